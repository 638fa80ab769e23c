"""Measurements: the same turns and the same searches in aforesaid and in SQLite FTS5, as ratios. No part of the product."""
