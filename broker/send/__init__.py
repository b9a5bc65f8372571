"""Storing what producers send."""
