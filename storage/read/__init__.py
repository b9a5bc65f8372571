"""Reading messages by offset, key and time; the bounds of a store without a shared state.

See docs/internals/read.md.
"""
