"""``rmqctl offset diff`` and ``export``: offsets beside others, and out of the store."""
