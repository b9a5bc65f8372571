"""Giving messages back: next attempts, dead letters, and why."""
