"""``rmqctl message export`` and ``import``: messages to files, and back."""
