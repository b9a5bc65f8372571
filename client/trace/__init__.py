"""Traces of messages: their text, their sending, the hooks that make them."""
