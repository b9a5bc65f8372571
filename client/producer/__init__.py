"""Producers: plain, batched, asynchronous and transactional sends.

See docs/internals/producer.md.
"""
