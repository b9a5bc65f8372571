"""``rmqctl message search``: its options, what it prints, the token to continue it."""
