"""Dividing a group's queues among its members."""
