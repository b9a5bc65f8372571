"""``rmqctl store carve``: copies a part of a store into a new store."""
