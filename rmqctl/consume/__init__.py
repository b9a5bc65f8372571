"""``rmqctl consume``: reads a topic, alone or as a member of a group."""
