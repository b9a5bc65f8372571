"""``rmqctl consume``: reading a topic, alone or as a member of a group."""
