"""``rmqctl group``: consumer groups and their members."""
