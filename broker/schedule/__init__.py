"""Delayed messages: waiting and being delivered.

See docs/internals/retries.md.
"""
