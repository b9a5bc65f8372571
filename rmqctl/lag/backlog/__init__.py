"""``rmqctl lag histogram`` and ``risk``: what a backlog is made of."""
