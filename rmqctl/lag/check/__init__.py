"""``rmqctl lag check``: lag against limits, for monitoring systems."""
