"""Listeners, the queues in their hands, and the threads that call them.

See docs/internals/push-consumer.md.
"""
