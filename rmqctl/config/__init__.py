"""``rmqctl config`` and ``rmqctl context``: the program's own settings."""
