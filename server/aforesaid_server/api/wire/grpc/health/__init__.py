"""Generated: the health protocol."""
