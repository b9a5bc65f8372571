"""Half messages, how they end, and checks of those that do not.

See docs/internals/retries.md.
"""
