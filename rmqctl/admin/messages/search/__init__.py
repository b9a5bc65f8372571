"""Searching the log as bytes first, then its records."""
