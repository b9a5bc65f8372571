"""``rmqctl message search``: searching the log as bytes first, then its records."""
