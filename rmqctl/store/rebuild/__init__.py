"""``rmqctl store rebuild``: queues and index made anew from the log."""
