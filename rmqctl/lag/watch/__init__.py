"""``rmqctl lag watch``: lag, again and again."""
