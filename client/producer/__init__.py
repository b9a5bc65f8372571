"""Producers: choosing a queue, sending, trying again, transactions."""
