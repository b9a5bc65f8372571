"""Many processes on one folder: the write lock, the shared state, wakeups, who is in.

See docs/internals/concurrency.md.
"""
