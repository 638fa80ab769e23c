"""Generated: the details of errors."""
