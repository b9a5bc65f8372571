"""Whether the words of the shared state can be true: they are compared with the files.

A word that is wrong (a stray write, a bad sector) would move a queue's end, or make a writer append
over messages. So each opener checks whether the words agree with each other and with the files, and
checks a queue's words at its first use. All of it takes some reads of a few bytes, however large
the store is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.errors import CorruptFileError
from storage.files.bounded import read_at, read_bounded
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.names import COMMITLOG, file_name
from storage.format.record import (
    BLANK_MAGIC,
    BLANK_SIZE,
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    RecordError,
    read_head,
)

from .shared_state import (
    QUEUES_NAME,
    STAGE_DELETE,
    STAGE_DISPATCH,
    STAGE_KEYS,
    STAGE_NONE,
    STAGE_RECORDS,
    Word,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.files.read_files import ReadOnlyFiles

    from .shared_state import SharedState

_MAGICS: Final = (MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2)
_BETWEEN_BATCHES: Final = (STAGE_NONE, STAGE_KEYS, STAGE_DELETE)
_STAGES: Final = (*_BETWEEN_BATCHES, STAGE_RECORDS, STAGE_DISPATCH)
_WORDS: Final = range(Word.STATE, Word.INDEX_BASE + 1)
_FARTHEST: Final = 1 << 60
_MOST_RECORDS: Final = 64
"""Records of the last batch that are checked."""
_LOOKS: Final = 50
_DAY_MS: Final = 86_400_000
_HEAD: Final = 128


class NewestRecord(NamedTuple):
    """The facts about the last batch."""

    store_timestamp: int
    whole: bool
    """All its records were checked."""


def contradiction(shared: SharedState, root: Path, log_file_size: int) -> str | None:
    """Why the words cannot be true, or None. Takes no lock: words that change are read again, and
    count as true if they keep changing, because a writer lives then."""
    for _ in range(_LOOKS):
        before = _copy(shared)
        found = _judge(shared, before, root, log_file_size)
        if found is None:
            return None
        if _copy(shared) == before:
            time.sleep(0.0005)  # a writer may be between two stores
            if _copy(shared) == before:
                return found
    return None


def _copy(shared: SharedState) -> list[int]:
    words = shared.words
    return [0] * Word.STATE + [int(words[number]) for number in _WORDS]


def _judge(shared: SharedState, words: list[int], root: Path, size: int) -> str | None:
    stage, start, to = words[Word.STAGE], words[Word.FROM], words[Word.TO]
    end = words[Word.LOG_END]
    if not 0 <= end < _FARTHEST or stage not in _STAGES:
        return "its words make no sense"
    if not _agrees(stage, start, to, end, size):
        return "the log's end is not where the last batch ended"
    if not 0 <= words[Word.FLUSHED_TO] <= end or not 0 <= words[Word.LOG_MIN] <= end:
        return "the log's end lies before what was synced or deleted"
    if not 0 <= words[Word.KEYS_FROM] <= end:
        return "keys are said to be there of records that are not"
    if stage == STAGE_KEYS and not words[Word.KEYS_FROM] <= words[Word.KEYS_TO] <= end:
        return "keys are being put of records that are not there"
    try:
        return (
            _judge_log(root, words, size)
            or _judge_keys(root, words, size)
            or _judge_names(shared, words, root)
        )
    except OSError as error:
        return f"{error.filename or root}: {error.strerror}"


def _agrees(stage: int, start: int, to: int, end: int, size: int) -> bool:
    """Whether the log's end fits the batch that was written last."""
    if stage == STAGE_RECORDS:
        return start == end < to and start // size == (to - 1) // size
    rolled = to == start + BLANK_SIZE and end == start - start % size + size
    return end in (start, to) or rolled or (start == to == 0 and stage in _BETWEEN_BATCHES)


def _judge_log(root: Path, words: list[int], size: int) -> str | None:
    """Compare the end with the bytes of the log there."""
    stage, start, to = words[Word.STAGE], words[Word.FROM], words[Word.TO]
    end = words[Word.LOG_END]
    if end != words[Word.LOG_MIN] and not end % size and not _path(root, end - size).exists():
        return "the last log file is missing"
    if stage in _BETWEEN_BATCHES:
        following = _read(root, end, size, 8)
        if _size_of(following, size):
            return "the log goes on after its end"
    if to == end and start < to and stage != STAGE_RECORDS:
        newest = _last_batch(root, start, to, size)
        if newest is None:
            return "the last batch is not where it should be"
        last = words[Word.LAST_STORE_TIMESTAMP]
        if stage in _BETWEEN_BATCHES and newest.whole:
            ahead = int(time.time() * 1000) + _DAY_MS
            if last < newest.store_timestamp or ahead < last != newest.store_timestamp:
                return "the time of the last message is another one"
    return None


def _last_batch(root: Path, start: int, to: int, size: int) -> NewestRecord | None:
    """Walk the records of [start, to); None if they are not there."""
    if start // size != (to - 1) // size:
        return None
    newest = 0
    for _ in range(_MOST_RECORDS):
        data = _read(root, start, size, _HEAD)
        length = _size_of(data, size)
        if not length or start + length > to:
            return None
        try:
            head = read_head(data)
        except RecordError:
            return None
        if head.physical_offset != start:
            return None
        newest = max(newest, head.store_timestamp)
        start += length
        if start == to:
            return NewestRecord(newest, True)
    return NewestRecord(newest, False)


def _judge_keys(root: Path, words: list[int], size: int) -> str | None:
    """Check the start of pending keys: keys are put for whole records, so a record begins there."""
    start = words[Word.KEYS_FROM]
    if start < words[Word.LOG_END] and words[Word.LOG_MIN] <= start:
        data = _read(root, start, size, 8)
        if data and not _size_of(data, size) and start % size:
            return "no record begins where keys are missing from"
    return None


def stale_log(root: Path, end: int, file_size: int) -> str | None:
    """Why the last log file cannot be that of a log that ends at ``end``; None if it can."""
    first = end - end % file_size
    if first == end:
        return None
    if first < 0:
        return "the log ends before its first byte"
    try:
        size = _path(root, first).stat().st_size
    except OSError:
        return "the last log file is missing"
    return None if size == file_size else "the last log file has another length"


def _judge_names(shared: SharedState, words: list[int], root: Path) -> str | None:
    count = words[Word.NAMES_BYTES]
    if count == 0 and not shared.mapped_offset(0):
        return None
    try:
        text = read_bounded(shared.path.parent / QUEUES_NAME)
    except FileNotFoundError:
        text = b""
    except CorruptFileError:
        return None  # a pipe or a folder in its place: a reader of the names reports it
    names = text[:count] if 0 <= count <= len(text) else b""
    if len(names) != count or (names and not names.endswith(b"\n")):
        return "the names of its queues end elsewhere"
    if names.count(b"\n") > shared.places():
        return "it has more names than places for queues"
    if shared.mapped_offset(names.count(b"\n")):
        return "it has more queues than names"
    return None


def _size_of(data: bytes, file_size: int) -> int:
    """Size of the record or blank that begins with these bytes, 0 if none does."""
    if len(data) < 8:
        return 0
    length = int.from_bytes(data[:4], "big", signed=True)
    magic = int.from_bytes(data[4:8], "big", signed=True)
    known = magic in _MAGICS or magic == BLANK_MAGIC
    return length if known and 0 < length <= file_size else 0


def _path(root: Path, first: int) -> Path:
    return root / COMMITLOG / file_name(first)


def _read(root: Path, offset: int, size: int, count: int) -> bytes:
    """Bytes of the log, fewer at a file's end; none where the file is missing."""
    position = offset % size
    try:
        return read_at(_path(root, offset - position), position, count)
    except FileNotFoundError:
        return b""


# -- queues --------------------------------------------------------------------------------------


def queue_agrees(shared: SharedState, topic: str, queue_id: int, row: ReadOnlyFiles) -> bool:
    """Whether a queue can end where the shared state says, by its files.

    The unit before its end is there, and the one at it is not, or is of a record after the log's
    end. Nothing is locked: log end, queue end and files are read in this order, so additions of a
    writer are no contradiction. A deletion between two of these reads can be one: look again.
    """
    if shared.words[Word.STAGE] == STAGE_DELETE and shared.slot(topic, queue_id) is None:
        return True  # its files are being removed
    log_end = int(shared.words[Word.LOG_END])
    end = shared.queue_end(topic, queue_id)
    files = row.relist()
    if not files:
        return 0 <= end < _FARTHEST
    first = files[0] // CQ_STORE_UNIT_SIZE
    following = (files[-1] + row.file_size) // CQ_STORE_UNIT_SIZE
    if not first <= end <= following:
        return end == 0 and _unit(row, first)[1] <= 0
    if end < following:
        offset, size = _unit(row, end)
        if size > 0 and offset >= 0 and offset + size <= log_end:
            return False
    if end == first:
        return True
    offset, size = _unit(row, end - 1)
    return size > 0 and offset >= 0 and offset + size <= _batch_end(shared)


def _unit(row: ReadOnlyFiles, queue_offset: int) -> tuple[int, int]:
    position = queue_offset * CQ_STORE_UNIT_SIZE
    within = position % row.file_size
    file = row.look(position - within)
    if file is None or within + CQ_STORE_UNIT_SIZE > file.length:
        return 0, 0
    offset, size, _ = CQ_STORE_UNIT.unpack_from(file.view, within)
    return offset, size


def _batch_end(shared: SharedState) -> int:
    """The log's end, or that of the batch whose units are being written."""
    words = shared.words
    to = int(words[Word.TO]) if words[Word.STAGE] == STAGE_DISPATCH else 0
    return max(to, int(words[Word.LOG_END]))
