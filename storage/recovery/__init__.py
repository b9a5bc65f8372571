"""What the first writer does when it cannot trust the shared state.

See docs/internals/recovery.md.
"""
