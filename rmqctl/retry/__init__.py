"""Messages that could not be consumed: what is known of them, and sending them now."""
