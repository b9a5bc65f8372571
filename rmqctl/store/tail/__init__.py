"""``rmqctl store tail``: the log as it grows."""
