"""``rmqctl store recover-offsets`` and ``recover-config``: recovery from damaged files."""
