"""Checks whether the bytes at a position of the commit log are a record.

The rules are those of CommitLog.checkMessageAndReturnSize, without Java's objects: recovery checks
every record of up to gigabytes. Version 2 records (5.1.0 and later) are accepted too. Offsets in
the record are not compared with its position, as in Java.
"""

from __future__ import annotations

from array import array
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from storage import native

from .crc import crc32
from .layout import (
    BLANK_MAGIC,
    HEAD_SIZES,
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    TWO_INTS,
    Buffer,
)

# totalSize, magic, bodyCRC, sysFlag and, with IPv4 hosts, bodyLen
_IPV4_FIELDS: Final = Struct(">3i24xi44xi")
_BODY_LENGTH: Final = Struct(">i")
_AFTER_ODD: Final = 128


class CheckKind(IntEnum):
    """What lies at a position of the commit log."""

    MESSAGE = 1
    BLANK = 2
    INVALID = 3


class CheckResult(NamedTuple):
    """Outcome of ``check_record``.

    ``size`` is the size of a MESSAGE. For BLANK it is the rest of the file by the blank record. For
    INVALID it is the size that the record claims if only the sum of its parts differs from it (Java
    skips so many bytes when it dispatches), else -1.
    """

    kind: CheckKind
    size: int
    reason: str = ""


class RecordScan(NamedTuple):
    """A run of consecutive whole records of ``sizes[i]`` bytes each.

    ``end`` is the end of the last one. ``stop`` says what lies there, None if the scan ended at
    ``max_count`` records.
    """

    sizes: array[int]
    end: int
    stop: CheckResult | None


def check_record(buffer: Buffer, position: int, limit: int, check_crc: bool = True) -> CheckResult:
    """Check what begins at ``position``; bytes from ``limit`` on do not count. Never raises."""
    limit = min(limit, len(buffer))
    if position < 0 or limit - position < TWO_INTS.size:
        return _invalid("fewer than 8 bytes are left")
    total, magic = TWO_INTS.unpack_from(buffer, position)
    if magic == BLANK_MAGIC:
        return CheckResult(CheckKind.BLANK, total)
    if magic not in (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2):
        return _invalid(f"unknown magic code {magic & 0xFFFFFFFF:#010x}")
    version = 1 if magic == MESSAGE_MAGIC_V1 else 2
    if limit - position < _IPV4_FIELDS.size:
        return _invalid("the fixed fields do not fit")
    _, _, crc, sys_flag, _ = _IPV4_FIELDS.unpack_from(buffer, position)
    at = position + HEAD_SIZES[sys_flag >> 4 & 3]
    if at > limit:
        return _invalid("the fixed fields do not fit")
    (body_length,) = _BODY_LENGTH.unpack_from(buffer, at - 4)
    if body_length > 0:
        if body_length > min(total, limit - at):
            return _invalid(f"a body of {body_length} bytes does not fit")
        if check_crc and crc32(buffer[at : at + body_length]) != crc:
            return _invalid("the CRC of the body does not match")
        at += body_length
    for what, width in (("topic", version), ("properties", 2)):
        if at + width > limit:
            return _invalid(f"the length of the {what} does not fit")
        length = int.from_bytes(buffer[at : at + width], "big", signed=True)
        at += width
        if (length < 0 and what == "topic") or length > min(total, limit - at):
            return _invalid(f"{length} bytes of {what} do not fit")
        at += max(0, length)
    if at - position != total:
        return CheckResult(
            CheckKind.INVALID, total, f"the parts have {at - position} bytes, the record {total}"
        )
    return CheckResult(CheckKind.MESSAGE, total)


def _invalid(reason: str) -> CheckResult:
    return CheckResult(CheckKind.INVALID, -1, reason)


def scan_records(
    buffer: Buffer,
    position: int,
    limit: int,
    *,
    check_crc: bool = True,
    max_count: int = 1 << 16,
) -> RecordScan:
    """Check consecutive records, up to ``max_count`` of them or the first that is none.

    The answers are those of ``check_record``; compiled code is many times as fast. ``buffer``
    should be a memoryview of the mapped file: slices of a map are copies.
    """
    sizes = array("q")
    while len(sizes) < max_count:
        plain, position = scan_plain(buffer, position, limit, max_count - len(sizes), check_crc)
        sizes.frombytes(plain)
        # It ends before an unusual record, and more of its kind may follow.
        for _ in range(min(_AFTER_ODD, max_count - len(sizes))):
            found = check_record(buffer, position, limit, check_crc)
            if found.kind is not CheckKind.MESSAGE:
                return RecordScan(sizes, position, found)
            sizes.append(found.size)
            position += found.size
    return RecordScan(sizes, position, None)


def _scan_plain(
    _buffer: Buffer, position: int, _limit: int, _most: int, _check_crc: bool, /
) -> tuple[bytes, int]:
    return b"", position


scan_plain: Final = native.form("scan_plain", _scan_plain)
"""Skip plain records, where that is compiled: their sizes as int64, and their end."""
