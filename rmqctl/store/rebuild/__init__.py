"""``rmqctl store rebuild``: rebuilds queues and index from the log."""
