"""Answering pulls, and holding those that found nothing."""
