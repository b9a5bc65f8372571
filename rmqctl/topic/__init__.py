"""``rmqctl topic``: topics and their queues."""
