"""The rules of a RocketMQ 4.9 broker over one store: send, pull, progress, topics, groups.

Clients use only :mod:`broker.api.broker` and cannot tell whether the broker is the store in this
process (:class:`broker.embedded.broker.EmbeddedBroker`) or a socket. Importing this package is
cheap.
"""
