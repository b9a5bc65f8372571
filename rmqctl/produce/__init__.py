"""``rmqctl produce``: from bytes on standard input to messages in a store."""
