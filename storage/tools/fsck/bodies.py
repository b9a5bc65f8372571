"""Records whose bodies are whole, but that readers cannot use: not to be unpacked, or empty."""

from __future__ import annotations

import numpy as np

from storage.format.errors import BodyError
from storage.format.record import RecordError, decode_record
from storage.format.sys_flag import MessageSysFlag
from storage.record_batch.record_batch import RecordBatch

from .unconfirmed import Mask

_BODY_LENGTH_AT = 84
"""Where the length of the body stands in a record with IPv4 hosts."""
_V6_MORE = 12
"""Bytes that an IPv6 host takes more."""


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
    """Say which message it is and why its body cannot be unpacked; None if it can be."""
    try:
        message = decode_record(view, place, size)
    except RecordError:
        return None  # told elsewhere
    try:
        message.body  # noqa: B018 - to be unpacked
    except BodyError as error:
        return str(error)
    return None


def packed_rows(block: RecordBatch) -> list[int]:
    """Rows of a block whose bodies are compressed."""
    rows: list[int] = np.flatnonzero(block.sys_flag & MessageSysFlag.COMPRESSED_FLAG).tolist()
    return rows
