"""Half messages, how they end, and checks of unfinished ones.

See docs/internals/retries.md.
"""
