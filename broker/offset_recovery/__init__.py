"""Offsets of groups whose progress is lost, from what messages tell."""
