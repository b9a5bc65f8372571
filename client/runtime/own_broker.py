"""The broker of ``Producer.open``, ``PushConsumer.open`` and the like."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker


def open_own_broker(store: str | PathLike[str]) -> EmbeddedBroker:
    """Open the store in a folder, and run the broker's services.

    One process of a store at a time delivers delayed messages and retries and checks transactions;
    in a store that rmqctl did not make, only ``broker start`` does so. Raises the errors of
    MessageStore.open.
    """
    from broker.embedded.broker import EmbeddedBroker

    broker = EmbeddedBroker.open(Path(store))
    try:
        broker.start_services()
    except BaseException:
        broker.close()
        raise
    return broker
