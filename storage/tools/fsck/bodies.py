"""Records with whole bodies that readers cannot use: they cannot be decompressed, or are empty."""

from __future__ import annotations

import numpy as np

from storage.format.errors import BodyError
from storage.format.record import RecordError, decode_record
from storage.format.sys_flag import MessageSysFlag
from storage.record_batch.record_batch import RecordBatch

from .unconfirmed import Mask

_BODY_LENGTH_AT = 84
"""Position of the body length in a record with IPv4 hosts."""
_V6_MORE = 12
"""Additional bytes of an IPv6 host."""


def empty_bodies(view: memoryview, block: RecordBatch) -> Mask:
    """Records whose bodies have no bytes."""
    flags = block.sys_flag
    at = block.place + _BODY_LENGTH_AT
    for flag in (MessageSysFlag.BORNHOST_V6_FLAG, MessageSysFlag.STOREHOSTADDRESS_V6_FLAG):
        at += _V6_MORE * (flags & flag != 0)
    raw = np.frombuffer(view, np.uint8)
    empty: Mask = raw[at + 3] == 0
    for higher in (2, 1, 0):
        rows = np.flatnonzero(empty)
        empty[rows] = raw[at[rows] + higher] == 0
    return empty


def unreadable_body(view: memoryview, place: int, size: int) -> str | None:
    """Name the message and the reason why its body cannot be decompressed; None if it can."""
    try:
        message = decode_record(view, place, size)
    except RecordError:
        return None  # reported elsewhere
    try:
        message.body  # noqa: B018 - to be decompressed
    except BodyError as error:
        return str(error)
    return None


def packed_rows(block: RecordBatch) -> list[int]:
    """Rows of a block with compressed bodies."""
    rows: list[int] = np.flatnonzero(block.sys_flag & MessageSysFlag.COMPRESSED_FLAG).tolist()
    return rows
