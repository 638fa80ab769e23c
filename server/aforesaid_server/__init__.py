"""The server of aforesaid: searches what was said in the conversations of AI agents."""
