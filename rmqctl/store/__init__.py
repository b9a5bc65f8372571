"""``rmqctl store``: creates, inspects, checks, repairs and copies stores."""
