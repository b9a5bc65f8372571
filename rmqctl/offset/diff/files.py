"""Files of offsets: what ``offset export`` writes, Kafka's layout, plans, and the stores' own.

CSV     ``topic,queue,offset`` or ``group,topic,queue,offset``, as Kafka's tool writes it, without
        a head line; with one, any columns in any order: group, topic, queue (queue_id,
        partition) and offset (else new_offset, else committed_offset)
JSON    an array of objects with those names, or an object for each line
        RocketMQ's consumerOffset.json, rmqctl's offsets.log, offsets.json of an older rmqctl
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from rmqctl.cli.given_file import read_given
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import DAMAGED, NOT_WRITABLE
from rmqctl.parse.near_names import did_you_mean
from storage.configs.checksummed_json import unseal
from storage.configs.consumer_offsets import OffsetTable, decode_offsets, split_topic_at_group
from storage.configs.progress_log import QUEUES, ProgressLog
from storage.configs.progress_reader import OFFSETS_FILE, TABLE_VERSION
from storage.configs.progress_rows import KnownRows
from storage.configs.progress_table import ProgressTable
from storage.errors import CorruptFileError
from storage.format.errors import JsonError
from storage.format.fastjson import loads
from storage.format.shapes import ShapeError
from storage.format.strict_json import name_given_twice

_TWICE: Final = " twice"  # a name in an object: it is JSON, but nothing that can be relied on
_TOO_LARGE: Final = 1 << 63
_MOST_DIGITS: Final = 30
_QUEUE: Final = ("queue_id", "queue", "partition", "queueId")
_OFFSET: Final = ("offset", "new_offset", "committed_offset")


class FileOffset(NamedTuple):
    """One line: a queue's offset, None for no progress; group None where the file names none."""

    group: str | None
    topic: str
    queue_id: int
    offset: int | None


def read_offset_file(path: Path) -> list[FileOffset]:
    """Read a file of offsets of any kind, told by its content; ``-`` is standard input.

    NotFound without a file; UsageProblem names the line that cannot be read, or that contradicts
    one before it; CliError (4) for a file of rmqctl's whose check sum is wrong.
    """
    try:
        data = read_given(path, stdin=True)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise CliError(f"{path} can not be read: {error.strerror}", NOT_WRITABLE) from error
    if data.startswith(b'{"crc":'):
        return _of_table(_own_table(path, data).offsets())
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageProblem(f"{path} is no file of offsets: it is not UTF-8") from None
    if text.lstrip()[:1] in {"{", "["}:
        return _agreeing(path, _of_json(path, text))
    return _agreeing(path, _of_csv(path, text))


def _agreeing(path: Path, lines: Iterable[tuple[str, FileOffset]]) -> list[FileOffset]:
    """The lines; UsageProblem for one that has another offset for a queue than one before it."""
    found: dict[tuple[str | None, str, int], tuple[str, FileOffset]] = {}
    for where, line in lines:
        before, first = found.setdefault(line[:3], (where, line))
        if line.offset != first.offset:
            of = f"queue {line.queue_id} of {line.topic}"
            of += "" if line.group is None else f" in group {line.group}"
            raise UsageProblem(
                f"{path}: {where} has another offset for {of} ({shown_offset(line.offset)}) than "
                f"{before} ({shown_offset(first.offset)})"
            )
    return [line for _, line in found.values()]


def shown_offset(offset: int | None) -> str:
    """An offset of a file in a sentence."""
    return "none" if offset is None else str(offset)


def _own_table(path: Path, data: bytes) -> ProgressTable:
    """The progress in a log of rmqctl's own, or in the one table of an older rmqctl."""
    entry = unseal(data)
    if entry is not None and entry.get("version") == TABLE_VERSION:
        try:
            return ProgressTable.from_entry(entry)
        except ShapeError as error:
            raise CliError(f"{path} is damaged: {error}", DAMAGED) from None
    if entry is not None and QUEUES not in entry:
        raise UsageProblem(f"{path} has no offsets: they are in {OFFSETS_FILE} beside it")
    try:
        return ProgressLog(path, data, 0, KnownRows).table
    except CorruptFileError as error:
        what = error.reason.partition(" ('rmqctl")[0]
        raise CliError(f"{path} is damaged at byte {error.position}: {what}", DAMAGED) from None


def _of_table(table: OffsetTable) -> list[FileOffset]:
    found = []
    for key, queues in table.items():
        parts = split_topic_at_group(key)
        if parts is not None:
            topic, group = parts
            found += [FileOffset(group, topic, *item) for item in sorted(queues.items())]
    return found


def _of_json(path: Path, text: str) -> Iterator[tuple[str, FileOffset]]:
    document: Any
    try:
        document = loads(text, once=True)
    except JsonError as whole:
        if _TWICE in str(whole):
            raise UsageProblem(f"{path} is no file of offsets: {whole}") from None
        try:
            document = [loads(line, once=True) for line in text.splitlines() if line.strip()]
        except JsonError as error:
            raise UsageProblem(f"{path} is no file of offsets: {error}") from None
    if isinstance(document, dict) and ("offsetTable" in document or "lmqOffsetTable" in document):
        try:
            yield from (("", line) for line in _of_table(decode_offsets(document)))
        except (ValueError, TypeError) as error:
            raise UsageProblem(f"{path} is no file of offsets: {error}") from None
        return
    rows = document if isinstance(document, list) else [document]
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UsageProblem(f"{path}: entry {number} is no object with an offset")
        yield f"entry {number}", _line(path, f"entry {number}", row)


def _of_csv(path: Path, text: str) -> Iterator[tuple[str, FileOffset]]:
    head: list[str] | None = None
    for number, cells in enumerate(_csv_rows(path, text), 1):
        if head is None:
            names = [cell.strip() for cell in cells]
            if "topic" in names and not names[-1].isdigit():
                twice = name_given_twice(filter(None, names))
                if twice is not None:
                    raise UsageProblem(f"{path}: line {number}: the header names {twice} twice")
                head = names
                continue
            head = ["topic", "queue", "offset"]
            if len(cells) == len(head) + 1:
                head.insert(0, "group")
        if len(cells) != len(head):
            has = f"it has {len(cells)} columns instead of {len(head)}"
            raise UsageProblem(f"{path}: line {number}: {has} ({','.join(head)})")
        yield f"line {number}", _line(path, f"line {number}", dict(zip(head, cells, strict=True)))


def _csv_rows(path: Path, text: str) -> Iterator[list[str]]:
    """The rows that are not empty. UsageProblem for what is no CSV."""
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        yield from (cells for cells in rows if any(cell.strip() for cell in cells))
    except csv.Error as error:
        raise UsageProblem(f"{path}: line {rows.line_num}: {error}") from None


def _line(path: Path, where: str, row: Mapping[Any, Any]) -> FileOffset:
    def first(names: Iterable[str]) -> Any:
        return next((row[name] for name in names if name in row), "")

    _check_names(path, where, row)
    queue_id = _number(first(_QUEUE))
    given = first(_OFFSET)
    offset = _number(given)
    topic, group = row.get("topic"), row.get("group")
    forgotten = given is None or (given == "" and any(name in row for name in _OFFSET))
    if not topic or queue_id is None or (offset is None and not forgotten):
        raise UsageProblem(f"{path}: {where} is no topic, queue and offset")
    return FileOffset(str(group) if group else None, str(topic), queue_id, offset)


def _check_names(path: Path, where: str, row: Mapping[Any, Any]) -> None:
    """Refuse a name that none of our rows of offsets has: a slip would go unseen."""
    from rmqctl.admin.offsets.comparison_rows import ExportedOffset
    from rmqctl.admin.offsets.inspection_rows import InspectedOffsetRow, OffsetRow
    from rmqctl.admin.offsets.rows import DoneMove, PlannedMove, ResetByTimeRow

    rows = (InspectedOffsetRow, PlannedMove, DoneMove, ExportedOffset, ResetByTimeRow, OffsetRow)
    known = {*_QUEUE, *_OFFSET, "topic", "group", *(n for one in rows for n in one._fields)}
    for name in row:
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise UsageProblem(f"{path}: {where} has {name!r}, which is no field of offsets{hint}")


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < _TOO_LARGE else None
    text = str(value).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        return None
    return number if (number := int(text)) < _TOO_LARGE else None
