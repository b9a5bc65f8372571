"""``rmqctl dlq redrive`` and ``ack``: sending dead letters again, marking them as handled."""
