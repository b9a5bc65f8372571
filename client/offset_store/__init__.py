"""Offsets of a consumer: in memory, at the broker, in a local file."""
