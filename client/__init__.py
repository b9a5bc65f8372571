"""Producers and consumers of a broker; programs import them from :mod:`rmqctl`.

This package talks to a ``Broker`` (the Protocol in :mod:`broker.api.broker`): a store in this
process or a remote one. It holds RocketMQ's client in Python's form: the producer with its queue
selectors, the push consumer with rebalancing, process queues, concurrent and orderly listeners and
retries, and the pull consumer.
"""
