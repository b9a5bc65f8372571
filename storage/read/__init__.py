"""Reading messages by offset, key and time, and the bounds of a store that no process keeps.

See docs/internals/read.md.
"""
