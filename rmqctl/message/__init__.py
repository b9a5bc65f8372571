"""Message filters: the options that ``consume`` and all commands over messages share."""
