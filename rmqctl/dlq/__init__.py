"""``rmqctl dlq``: dead letters, the messages that a group gave up."""
