"""Traces of messages: their text, who sends them, the hooks that make them."""
