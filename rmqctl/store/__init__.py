"""What the reading commands find out about a store."""
