"""The same as ``check.scan_records`` with NumPy: for logs of many thousands of records."""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .check import RecordScan, scan_in_runs
from .crc import CRC_MASK, bulk_crc32
from .layout import HEAD_SIZES, MESSAGE_MAGIC_V1

_SIZE: Final = Struct(">i")
_HEAD: Final = HEAD_SIZES[0]
_LEAST: Final = _HEAD + 3  # the lengths of topic and properties
_FIELDS: Final = np.dtype(
    {
        "names": ["magic", "crc", "sys_flag", "body_length"],
        "formats": [">i4"] * 4,
        "offsets": [4, 8, 36, 84],
        "itemsize": _HEAD,
    }
)
_IPV6: Final = 0x30
_SHORT_RUN: Final = 512
_LONG_RUN: Final = 1 << 13
_FEW: Final = 32

Longs = NDArray[np.int64]


def scan_many(
    buffer: memoryview, position: int, limit: int, *, check_crc: bool, max_count: int
) -> RecordScan:
    """Check record after record, up to ``max_count`` of them or the first that is none.

    The answers of ``check_record``; for where there is no compiled form (scan.c of storage/native).
    Sizes are followed from record to record; everything else is judged for a run of them at once.
    """
    limit = min(limit, len(buffer))
    wanted = _SHORT_RUN

    def run(position: int, most: int) -> tuple[array[int], int]:
        nonlocal wanted
        found = array("q")
        while len(found) < most:
            asked = min(wanted, most - len(found))
            sizes = _run(buffer, position, limit, asked, check_crc)
            found.extend(sizes)
            position += sum(sizes)
            if len(sizes) < asked:
                wanted = _SHORT_RUN
                break
            wanted = min(2 * wanted, _LONG_RUN)
        return found, position

    return scan_in_runs(run, buffer, position, limit, check_crc=check_crc, max_count=max_count)


def _run(buffer: memoryview, position: int, limit: int, count: int, check_crc: bool) -> list[int]:
    """Sizes of the plain records at ``position``, ``count`` at most; ends before any other one."""
    sizes = _claimed_sizes(buffer, position, limit, count)
    if not sizes:
        return sizes
    size = np.array(sizes, np.int64)
    end = position + np.cumsum(size)
    start = end - size
    octets = np.frombuffer(buffer, np.uint8)
    heads = _heads_at(buffer, start)
    body_length = heads["body_length"].astype(np.int64)
    plain = heads["magic"] == MESSAGE_MAGIC_V1
    plain &= heads["sys_flag"] & _IPV6 == 0
    plain &= (body_length > 0) & (body_length <= size - _LEAST)
    body = start + _HEAD
    topic = np.where(plain, body + body_length, body)
    topic_length = octets[topic].astype(np.int64)
    properties = topic + topic_length + 3
    plain &= (topic_length < 128) & (properties <= end)
    lengths = np.where(plain, properties, body) - 2
    high = octets[lengths].astype(np.int64)
    plain &= (high < 128) & (properties + (high << 8 | octets[lengths + 1]) == end)
    good = _leading(plain)
    if check_crc and good:
        bodies = map(slice, body[:good].tolist(), topic[:good].tolist())
        sums = np.fromiter(map(bulk_crc32(), map(buffer.__getitem__, bodies)), np.int64, good)
        good = _leading(sums & CRC_MASK == heads["crc"][:good])
    return sizes[:good]


def _claimed_sizes(buffer: memoryview, position: int, limit: int, count: int) -> list[int]:
    """What records claim to be long, one behind the other, as far as they fit."""
    unpack = _SIZE.unpack_from
    sizes = _equal_sizes(buffer, position, limit, count)
    position += sum(sizes)
    last = limit - _LEAST
    while position <= last and len(sizes) < count:
        (size,) = unpack(buffer, position)
        position += size
        if size < _LEAST or position > limit:
            break
        sizes.append(size)
    return sizes


def _equal_sizes(buffer: memoryview, position: int, limit: int, count: int) -> list[int]:
    """Claimed sizes as long as they are the same: often so, and seen without a step for each."""
    if limit - position < _LEAST:
        return []
    (size,) = _SIZE.unpack_from(buffer, position)
    if size < _LEAST:
        return []
    most = min(count, (limit - position) // size)
    equal = 0
    for tried in (min(most, _FEW), most):
        claims: NDArray[Any] = np.ndarray((tried,), ">i4", buffer, position, (size,))
        equal = _leading(claims == size) if tried else 0
        if equal < tried:
            break
    return [size] * equal


def _heads_at(buffer: memoryview, positions: Longs) -> NDArray[Any]:
    """The heads of records at any positions, copied at once."""
    count = len(buffer) - _HEAD + 1
    every: NDArray[Any] = np.ndarray((count,), f"V{_HEAD}", buffer, 0, (1,))
    return every[positions].view(_FIELDS)


def _leading(flags: NDArray[np.bool_]) -> int:
    """How many are true before the first that is not."""
    return len(flags) if flags.all() else int(flags.argmin())
