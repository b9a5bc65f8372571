"""``rmqctl audit``: who changed what."""
