"""``rmqctl offset``: how far groups are."""
