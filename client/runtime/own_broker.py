"""The broker of ``Producer.open``, ``PushConsumer.open`` and the like."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from client.arguments import check_folder

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker


def open_own_broker(store: str | PathLike[str], *, create: bool = False) -> EmbeddedBroker:
    """Open the store in a folder, and run the broker's services.

    ``create`` makes the store first if there is none.
    One process of a store at a time delivers delayed messages and retries and checks transactions;
    in a store that rmqctl did not make, only ``broker start`` does so. Raises the errors of
    EmbeddedBroker.open, and ClientArgumentError for what is no path.
    """
    check_folder(store)
    from broker.embedded.broker import EmbeddedBroker

    broker = EmbeddedBroker.open(Path(store), create=create)
    try:
        broker.start_services()
    except BaseException:
        broker.close()
        raise
    return broker
