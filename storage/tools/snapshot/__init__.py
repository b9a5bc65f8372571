"""Copies of whole stores: taken while writers run, checked, and made stores again.

See docs/internals/snapshots.md.
"""
