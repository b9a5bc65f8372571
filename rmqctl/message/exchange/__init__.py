"""``rmqctl message export`` and ``import``: messages into files, and back."""
