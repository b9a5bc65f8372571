"""``rmqctl dlq``: dead letters, messages that a group gave up."""
