"""Offsets of groups whose progress is lost, from evidence in messages."""
