"""Generators of UNIQ_KEYs, one for each client and broker of this process."""

from __future__ import annotations

import os

from storage.format.host import pack_host
from storage.format.message_id import UniqueIds


def unique_ids_of(host: str) -> UniqueIds:
    """Make a generator for ``ip:port``; a random number tells it apart from others of the process.

    Raises ValueError if that is no address.
    """
    return UniqueIds(pack_host(host)[:-4], os.getpid(), int.from_bytes(os.urandom(4), "big"))
