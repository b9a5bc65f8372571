"""Searching the log itself: as bytes first, then the records in which the bytes lie."""
