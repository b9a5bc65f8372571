"""What a change needs that appends records: a broker over a store that is open for writing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from broker.api.broker import Broker

if TYPE_CHECKING:
    from pathlib import Path

    from broker.retry.deliver_early import EarlyDeliveryHandler
    from broker.retry.redrive import RedriveHandler
    from storage.readonly import StoreView
    from storage.store import MessageStore


class StoreWriter(Broker, Protocol):
    """A broker with its open store."""

    @property
    def view(self) -> StoreView:
        """The files of the store."""
        ...

    @property
    def store(self) -> MessageStore | None:
        """The store; None if it is open for reading."""
        ...

    @property
    def redriving(self) -> RedriveHandler:
        """Sends dead letters again."""
        ...

    @property
    def cutting_short(self) -> EarlyDeliveryHandler:
        """Ends the wait of delayed messages."""
        ...


OpenWriter = Callable[[], AbstractContextManager[StoreWriter]]


def writer_of(root: Path) -> OpenWriter:
    """What opens a store for writing in this process, with the store's own settings."""

    def opened() -> AbstractContextManager[StoreWriter]:
        from broker.embedded.broker import EmbeddedBroker

        return EmbeddedBroker.open(root)

    return opened


def time_of(writer: StoreWriter) -> int:
    """The time of a store's clock, in epoch ms."""
    from storage.clock import now_ms

    return now_ms() if writer.store is None else writer.store.now()
