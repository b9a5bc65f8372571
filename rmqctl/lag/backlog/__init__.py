"""``rmqctl lag histogram`` and ``risk``: the composition of a backlog."""
