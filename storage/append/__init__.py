"""Appending to the log, its queues and its index; syncing them; deleting old files."""
