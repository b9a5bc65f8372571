"""Listeners, the process queues that feed them, and the threads that call them.

See docs/internals/push-consumer.md.
"""
