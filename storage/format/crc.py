"""The body checksum: CRC-32 of zlib, without its highest bit (org.apache.rocketmq UtilAll.crc32).

It covers the body as stored (compressed if it is), nothing else of the record.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from storage import native

CRC_MASK: Final = 0x7FFFFFFF


whole_crc32: Final[Callable[[bytes | bytearray | memoryview], int]] = native.form(
    "crc32", zlib.crc32
)
"""zlib's CRC-32; **mask it yourself**. Compiled it takes a third of the time at 100 bytes."""


def crc32(body: bytes | bytearray | memoryview) -> int:
    """Checksum of a body: 0 .. 2^31 - 1; 0 for an empty one."""
    return whole_crc32(body) & CRC_MASK


def bulk_crc32_from() -> Callable[[bytes | bytearray | memoryview, int], int]:
    """Give the CRC-32 for data in parts; the second argument is the sum so far. isal's takes a
    tenth of zlib's time, but its import some milliseconds."""
    try:
        from isal.isal_zlib import crc32 as fast_crc32
    except ImportError:
        return zlib.crc32
    return fast_crc32


def crc_after_zeros(value: int, count: int) -> int:
    """Give zlib's CRC-32 of data whose sum is ``value``, followed by ``count`` zero bytes.

    Zeros change the sum's register by a matrix of bits. Its powers take as many steps as the count
    has digits; reading a hole of terabytes would take hours.
    """
    register = value ^ 0xFFFFFFFF
    matrix = [zlib.crc32(b"\0", 1 << bit ^ 0xFFFFFFFF) ^ 0xFFFFFFFF for bit in range(32)]
    while count:
        if count & 1:
            register = _times(matrix, register)
        count >>= 1
        if count:
            matrix = [_times(matrix, row) for row in matrix]
    return register ^ 0xFFFFFFFF


def _times(matrix: list[int], register: int) -> int:
    result = 0
    for row in matrix:
        if register & 1:
            result ^= row
        register >>= 1
    return result
