"""The files of a RocketMQ 4.9 store: bytes to values, logs, queues, indexes, recovery.

Importing this package is cheap: standard library only, no thread started, no file touched.
"""
