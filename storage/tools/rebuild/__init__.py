"""Rebuilding what follows from the log: consume queues and the key index.

See docs/internals/fsck-repair.md.
"""
