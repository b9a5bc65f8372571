"""Who is in a group, who holds a queue, and what processes tell each other.

See docs/internals/concurrency.md.
"""
