"""Members of groups, holders of queues, and messages between processes.

See docs/internals/concurrency.md.
"""
