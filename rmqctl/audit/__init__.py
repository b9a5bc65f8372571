"""``rmqctl audit`` and the change journal: who has changed what."""
