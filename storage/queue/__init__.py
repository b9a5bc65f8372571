"""Consume queues: their files read and written, where they end, what they lack."""
