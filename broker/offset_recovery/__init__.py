"""What messages tell of groups whose progress is lost."""
