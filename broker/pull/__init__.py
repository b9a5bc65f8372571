"""Answering pulls, and holding those that found nothing.

See docs/internals/read.md.
"""
