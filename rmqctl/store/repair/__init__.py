"""Mending stores: what would be done, doing it, what was done."""
