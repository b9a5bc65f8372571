"""``rmqctl store snapshot``, ``restore`` and ``diff``: copies of a store."""
