"""The port: what a client needs of a broker, in requests and results that could cross a wire.

``broker.embedded.broker.EmbeddedBroker`` answers over a store in this process. A client cannot tell
it from a broker reached through a socket. A test can take its place: any object with these methods
may refuse, fail or answer late. The roles of a broker and their values are in :mod:`broker.api`.

Answers that RocketMQ has named are values; every refusal is a BrokerError with RocketMQ's response
code and remark. A broker in this process may also raise the StoreErrors of its store. All methods
may be called from any thread. Offsets, queue ids and times (ms since the epoch) are plain ints.
"""

from __future__ import annotations

from typing import Protocol

from .members import MemberApi
from .offsets import OffsetApi
from .pull import PullApi
from .send import SendApi
from .send_back import SendBackApi
from .topics import TopicApi
from .transactions import TransactionApi


class Broker(
    TopicApi, SendApi, PullApi, OffsetApi, MemberApi, SendBackApi, TransactionApi, Protocol
):
    """A broker as clients see it; the rules of each method are those of the real one."""

    @property
    def name(self) -> str:
        """The broker's name, part of every MessageQueue."""
        ...

    def close(self) -> None:
        """Leave; held pulls are answered, progress is written. Closing twice is fine."""
        ...
