"""Writing records that keep the times, and if wanted the queue offsets, of their source: into a new
store, or after the records of an existing one.

See docs/internals/snapshots.md.
"""
