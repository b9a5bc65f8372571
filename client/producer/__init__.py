"""Producers: plain, batched, asynchronous and transactional sends."""
