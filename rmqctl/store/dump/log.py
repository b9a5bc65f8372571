"""A commit log file, or the piece at one log position."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.format.errors import BodyError, RecordError
from storage.format.layout import MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2
from storage.format.names import parse_file_name
from storage.format.record import CheckKind, check_record, decode_record, read_head

from .holes import Holes
from .rows import RecordDump

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap

_MAGICS: Final = tuple(
    magic.to_bytes(4, "big", signed=True) for magic in (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2)
)
_ZEROS: Final = bytes(1 << 20)


def record_rows(file: "ReadMap", path: Path) -> Iterator[RecordDump]:
    """All pieces of a commit log file, in order; together they cover the file.

    Its name is the log position of its start; any other name counts as 0.
    """
    first = parse_file_name(path.name) or 0
    used = Holes(path, file.length).used
    position = 0
    while position < file.length:
        row = _piece(file, position, first, used)
        yield row
        position += row.size


def record_at(file: "ReadMap", path: Path, position: int) -> RecordDump:
    """The piece that begins at a byte of a commit log file."""
    first = parse_file_name(path.name) or 0
    return _piece(file, position, first, Holes(path, file.length).used)


def _piece(file: "ReadMap", position: int, first: int, used: int) -> RecordDump:
    """The piece that begins at ``position`` of a file that has only zeros from ``used`` on."""
    found = check_record(file.view, position, file.length)
    place = first + position
    if found.kind is CheckKind.MESSAGE:
        return _record(file, position, found.size, place, None)
    if found.kind is CheckKind.BLANK:
        left = file.length - position
        if found.size == left:
            return RecordDump(place, "BLANK", left, None)
        wrong = f"its length field is {found.size}"
        end = _next_record(file, position, used)
        if end < file.length:
            return _head_only(file, position, end, place, f"a blank record, but {wrong}")
        return RecordDump(place, "BLANK", left, wrong)
    whole = check_record(file.view, position, file.length, check_crc=False)
    if whole.kind is CheckKind.MESSAGE and _goes_on(file, position + whole.size):
        return _record(file, position, whole.size, place, found.reason)
    end = _next_record(file, position, used)
    if _is_zero(file, position, min(end, used)):
        return RecordDump(place, "EMPTY", end - position, None)
    return _head_only(file, position, end, place, found.reason)


def _goes_on(file: "ReadMap", position: int) -> bool:
    """Whether a record may end here: another record follows, or nothing."""
    following = check_record(file.view, position, file.length)
    return following.kind is not CheckKind.INVALID or not any(file.view[position : position + 8])


def _record(
    file: "ReadMap", position: int, size: int, place: int, problem: str | None
) -> RecordDump:
    try:
        message = decode_record(file.view, position, size)
    except RecordError as error:
        return _head_only(file, position, position + size, place, error.reason)
    kind = "MESSAGE" if problem is None else "DAMAGED"
    if problem is None and message.commitlog_offset != place:
        kind, problem = "DAMAGED", f"its own position field is {message.commitlog_offset}"
    body, encoded = None, None
    try:
        body = message.body.decode("utf-8")
    except (UnicodeDecodeError, BodyError) as error:
        encoded = base64.b64encode(message.stored_body).decode()
        if isinstance(error, BodyError) and problem is None:
            kind, problem = "DAMAGED", str(error)
    return RecordDump(
        place,
        kind,
        size,
        problem,
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.store_timestamp,
        message.tags,
        list(message.keys),
        message.msg_id,
        len(message.stored_body),
        body,
        encoded,
        message.properties,
        message.commitlog_offset,
        message.version,
        message.body_crc,
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        message.born_host,
        message.store_host,
        message.reconsume_times,
        message.prepared_transaction_offset,
    )


def _head_only(file: "ReadMap", position: int, end: int, place: int, reason: str) -> RecordDump:
    """Bytes that are not a whole record; with a valid magic code, also the fields of the head."""
    lost = RecordDump(place, "LOST", end - position, reason)
    if bytes(file.view[position + 4 : position + 8]) not in _MAGICS:
        return lost
    try:
        head = read_head(file.view, position)
    except RecordError:
        return lost
    return lost._replace(
        kind="DAMAGED",
        queue_id=head.queue_id,
        queue_offset=head.queue_offset,
        store_timestamp=head.store_timestamp,
        body_size=head.body_length,
        physical_offset=head.physical_offset,
        body_crc=head.body_crc,
        flag=head.flag,
        sys_flag=head.sys_flag,
        born_timestamp=head.born_timestamp,
        reconsume_times=head.reconsume_times,
        prepared_transaction_offset=head.prepared_transaction_offset,
    )


def _next_record(file: "ReadMap", position: int, used: int) -> int:
    """Start of the next whole record after ``position``, else the end of the file."""
    found: int | None = None
    for magic in _MAGICS:
        limit = used if found is None else found
        at = file.map.find(magic, position + 8, limit)
        while at >= 0:
            if check_record(file.view, at - 4, file.length).kind is CheckKind.MESSAGE:
                found = at - 4
                break
            at = file.map.find(magic, at + 1, limit)
    return file.length if found is None else found


def _is_zero(file: "ReadMap", start: int, end: int) -> bool:
    for position in range(start, end, len(_ZEROS)):
        block = file.view[position : min(end, position + len(_ZEROS))]
        if block != _ZEROS[: len(block)]:
            return False
    return True
