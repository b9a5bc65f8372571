"""``rmqctl store carve``: a part of a store as a store of its own."""
