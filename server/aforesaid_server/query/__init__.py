"""Queries: from the text that somebody typed to what it asks of a turn. Pure; knows no index and no store."""
