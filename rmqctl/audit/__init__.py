"""``rmqctl audit`` and the change journal: who changed what."""
