"""Delayed messages: waiting and being delivered."""
