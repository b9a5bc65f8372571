"""``rmqctl broker``: its services, status and settings."""
