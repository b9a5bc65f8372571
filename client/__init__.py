"""Producers and consumers of a broker.

This package talks to a ``Broker`` (the Protocol in :mod:`broker.api`) and cannot tell whether
that is the store in this process or something behind a socket. It is where RocketMQ's client
lives in Python's form: the producer with its queue selectors, the push consumer with
rebalancing, process queues, concurrent and orderly listeners and retries, and the pull
consumer. The command line sends and reads through :mod:`broker` until they are here.
"""
