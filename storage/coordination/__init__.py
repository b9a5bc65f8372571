"""Many processes on one folder: write lock, shared state, wakeups, process entries, leadership.

See docs/internals/concurrency.md.
"""
