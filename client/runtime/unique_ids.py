"""Ids that a client gives to messages and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.config import unique_ids_of

if TYPE_CHECKING:
    from storage.format.message_id import UniqueIds

_LOCALHOST: Final = "127.0.0.1:0"


def client_unique_ids(client_ip: str) -> UniqueIds:
    """Make a generator of ids; a client whose address is no address is on this machine."""
    try:
        return unique_ids_of(f"{client_ip}:0")
    except ValueError:
        return unique_ids_of(_LOCALHOST)
