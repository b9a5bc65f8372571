"""``rmqctl produce``: sends messages to a store."""
