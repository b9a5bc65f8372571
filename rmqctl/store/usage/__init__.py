"""``rmqctl store du`` and ``clean``: disk usage, and deleting expired files."""
