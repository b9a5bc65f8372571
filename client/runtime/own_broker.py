"""A broker that a client brings along: ``Producer.open``, ``PushConsumer.open`` and the like."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker


def open_own_broker(store: str | PathLike[str]) -> EmbeddedBroker:
    """Open the store in a folder, and do what a broker does by itself.

    In one process of a store at a time that is to bring delayed messages and retries and to ask
    about transactions; with a store that somebody else than rmqctl made, only ``broker start`` does
    so. Raises what MessageStore.open raises.
    """
    from broker.embedded.broker import EmbeddedBroker

    broker = EmbeddedBroker.open(Path(store))
    try:
        broker.start_services()
    except BaseException:
        broker.close()
        raise
    return broker
