"""``rmqctl message``: finding, tracing and counting messages."""
