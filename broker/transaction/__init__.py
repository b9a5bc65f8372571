"""Half messages, how they end, and asking for those that do not."""
