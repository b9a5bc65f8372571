"""``rmqctl store tail``: follows the log as it grows."""
