"""``rmqctl lag``: the lag of consumer groups."""
