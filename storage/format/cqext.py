"""Units of ConsumeQueueExt (``consumequeue_ext``, org.apache.rocketmq.store.ConsumeQueueExt).

With ``enableConsumeQueueExt`` the tags code of a consume queue unit is an address, and the tag's
hash lies here. rmqctl reads these files so as not to misread the queue, and never writes them.

    0        2             10            18              20
    +--------+-------------+-------------+---------------+---------+
    | size   | tagsCode    | storeTime   | bitMapBytes   | bit map |
    +--------+-------------+-------------+---------------+---------+

A file ends with a size of -1 where fewer than the next unit's size + 4 bytes were left.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from .cq_unit import is_ext_addr as is_ext_addr
from .errors import FormatError

_FIXED: Final = Struct(">h2qh")
MIN_EXT_UNIT_SIZE: Final = _FIXED.size
_SIZE: Final = Struct(">h")
_LONG_MIN: Final = -(1 << 63)


class ExtUnit(NamedTuple):
    """One unit: its length in bytes, the hash of the tag, the store time in ms, filter bits."""

    size: int
    tags_code: int
    store_timestamp: int
    filter_bit_map: bytes


def ext_offset(address: int) -> int:
    """Turn a consume queue unit's tags code into a byte offset in the ext queue (unDecorate).

    Raises ValueError for a code that is a tag's hash.
    """
    if not is_ext_addr(address):
        raise ValueError(f"{address} is a tag's hash, not an address into consumequeue_ext")
    return address - _LONG_MIN


def ext_address(offset: int) -> int:
    """Turn a byte offset in the ext queue into what a consume queue unit holds (decorate)."""
    return offset + _LONG_MIN


def decode_ext_unit(buffer: bytes | memoryview, position: int) -> ExtUnit | None:
    """Decode the unit at ``position``; None at the end of a file's units.

    FormatError if the bytes are neither a unit nor an end.
    """
    if position < 0 or position + _SIZE.size > len(buffer):
        return None
    (size,) = _SIZE.unpack_from(buffer, position)
    if size <= 0:
        return None
    if size < MIN_EXT_UNIT_SIZE or position + size > len(buffer):
        raise FormatError(f"an ext unit of {size} bytes can not lie at byte {position}")
    size, tags_code, store_timestamp, bits = _FIXED.unpack_from(buffer, position)
    if bits < 0 or MIN_EXT_UNIT_SIZE + bits > size:
        raise FormatError(f"{bits} bytes of bit map do not fit an ext unit of {size} bytes")
    start = position + MIN_EXT_UNIT_SIZE
    return ExtUnit(size, tags_code, store_timestamp, bytes(buffer[start : start + bits]))
