"""Records that keep the times, and if wanted the queue offsets, that they have elsewhere: in a new
store, or behind the older ones of a store that is there.

See docs/internals/snapshots.md.
"""
