"""``rmqctl store recover-offsets`` and ``recover-config``: what damaged files still tell."""
