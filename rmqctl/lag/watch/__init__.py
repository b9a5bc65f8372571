"""``rmqctl lag watch``: the lag, at intervals."""
