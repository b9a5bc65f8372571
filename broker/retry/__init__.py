"""Messages that a consumer could not consume: next attempts, dead letters, redriving.

See docs/internals/retries.md.
"""
