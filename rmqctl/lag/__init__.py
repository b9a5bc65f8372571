"""``rmqctl lag``: how late groups are."""
