"""``rmqctl lag check``: limits, for monitoring systems."""
