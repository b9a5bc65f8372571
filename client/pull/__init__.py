"""Consumers without a listener: pulling by hand, and polling."""
