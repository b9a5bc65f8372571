"""``rmqctl message``: finding, following and counting messages."""
