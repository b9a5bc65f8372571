"""Producers and consumers of a broker; programs import them from :mod:`rmqctl`.

This package talks to a ``Broker`` (the Protocol in :mod:`broker.api.broker`) and cannot tell
whether that is the store in this process or something behind a socket. It is where RocketMQ's
client lives in Python's form: the producer with its queue selectors, the push consumer with
rebalancing, process queues, concurrent and orderly listeners and retries, and the pull consumer.
"""
