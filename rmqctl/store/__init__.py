"""``rmqctl store``: making a store, looking at it, checking and mending it."""
