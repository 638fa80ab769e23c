"""Text: what the words of a text are, and what the text of a turn is. Pure; knows no query and no index."""
