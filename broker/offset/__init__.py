"""Offsets of groups: committed, moved, sampled, and where a group begins.

See docs/internals/offsets.md.
"""
