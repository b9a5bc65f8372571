"""Traces of messages: their text, who sends them, what they hang on."""
