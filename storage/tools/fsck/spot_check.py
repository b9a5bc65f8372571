"""The quick check: files, ends and samples, in a time that does not grow with the store.

It checks the names and lengths of all files, the record at the beginning of each log file, some
units of each queue and their records with body, tag and place, the heads of the index files, and
all ends. Data between samples is not checked; the full check reads everything.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from storage.config import StoreConfig
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.format.index_file import INDEX_ENTRY, INDEX_HEADER_SIZE, IndexHeader, entry_position
from storage.format.names import COMMITLOG, CONSUMEQUEUE, INDEX, file_name, is_index_file_name
from storage.format.record import CheckKind, check_record, decode_record, read_head
from storage.record_batch.arrays import Longs

from .deletions import Deletions
from .findings import Checked, Code, Finding, Severity
from .units import units_at

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles, StoreFiles

Emit = Callable[[Finding], None]
QueueKey = tuple[str, int]

SAMPLES: Final = 4096
"""Units of all queues that are checked, at least two of each queue."""


def check_samples(
    files: StoreFiles,
    next_offsets: dict[QueueKey, int],
    emit: Emit,
    checked: Checked,
    *,
    log_min: int,
    log_end: int,
    deletions: Deletions,
) -> None:
    """Check the first record of each log file and some units of each queue."""
    size = files.log.file_size
    reported: set[int] = set()
    for first in files.log.relist():
        if log_min <= first < log_end:
            problem = _problem_at(files.log, first, None)
            checked.records += problem is None
            if problem is not None and first >= deletions.log_min():
                reported.add(first)
                _emit_record(emit, size, first, problem)
    each = max(2, SAMPLES // max(1, len(next_offsets)))
    for key, end in sorted(next_offsets.items()):
        row = files.queue(*key)
        if row is not None and row.relist():
            start = row.offsets()[0] // CQ_STORE_UNIT_SIZE
            numbers = places(start, end, each)
            _check_units(files, row, key, numbers, emit, checked, log_min, reported, deletions)


def places(start: int, end: int, count: int) -> Longs:
    """At most so many queue offsets of [start, end), the first and the last among them."""
    numbers = np.unique(np.linspace(start, max(start, end - 1), count).astype(np.int64))
    return numbers[numbers < end]


def _check_units(
    files: StoreFiles,
    row: ReadOnlyFiles,
    key: QueueKey,
    numbers: Longs,
    emit: Emit,
    checked: Checked,
    log_min: int,
    reported: set[int],
    deletions: Deletions,
) -> None:
    units = units_at(row, numbers)
    checked.units += len(units)
    where = f"{key[0]} queue {key[1]} offset"
    for number, (offset, size, _) in zip(numbers.tolist(), units.tolist(), strict=True):
        if size <= 0 or offset < 0:
            first = number * CQ_STORE_UNIT_SIZE // row.file_size * row.file_size
            if number < deletions.units_gone_to(key):
                continue
            if row.at(first) is not None or first > row.offsets()[-1]:
                _emit_unit(emit, row, key, number, f"{where} {number}: there is no unit")
            continue  # else a file between others is missing, which is reported
        if size == PRE_BLANK_SIZE or offset < log_min:
            continue
        problem = _problem_at(files.log, offset, size)
        if problem is None:
            checked.records += 1
        elif offset not in reported and offset >= deletions.records_gone_to(key):
            _emit_record(emit, files.log.file_size, offset, f"{where} {number}: {problem}")


def _problem_at(log: ReadOnlyFiles, offset: int, size: int | None) -> str | None:
    """Why no whole record (of this size) lies at a log offset, with its body; None if it does."""
    position = offset % log.file_size
    file = log.at(offset - position)
    if file is None:
        return "its file is missing"
    found = check_record(file.view, position, file.length)
    if found.kind is not CheckKind.MESSAGE:
        return found.reason or "a blank record"
    if size is not None and found.size != size:
        return f"the record has {found.size} bytes, its unit says {size}"
    claimed = read_head(file.view, position).physical_offset
    return None if claimed == offset else f"the record says it lies at {claimed}"


def _emit_record(emit: Emit, file_size: int, offset: int, what: str) -> None:
    position = offset % file_size
    path = f"{COMMITLOG}/{file_name(offset - position)}"
    effect = "this message is never handed out; run the full check to see what else is damaged"
    fix = "rmqctl store repair"
    emit(Finding(Code.RECORD_DAMAGED, Severity.ERROR, path, position, what, effect, fix))


def _emit_unit(
    emit: Emit,
    row: ReadOnlyFiles,
    key: QueueKey,
    number: int,
    what: str,
    code: Code = Code.UNIT_MISSING,
    effect: str = "consumers do not get this message; run the full check to see which else",
) -> None:
    byte = number * CQ_STORE_UNIT_SIZE
    within = byte % row.file_size
    path = f"{CONSUMEQUEUE}/{key[0]}/{key[1]}/{file_name(byte - within)}"
    fix = f"rmqctl store rebuild queue -t {key[0]}"
    emit(Finding(code, Severity.WARNING, path, within, what, effect, fix))


def check_index_heads(root: Path, config: StoreConfig, emit: Emit, checked: Checked) -> None:
    """Compare the head of each index file with its first and last key."""
    folder = root / INDEX
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in paths:
        if is_index_file_name(path.name) and path.is_file():
            with suppress(FileNotFoundError):  # deleted meanwhile
                _check_head(path, config, emit, checked)


def _check_head(path: Path, config: StoreConfig, emit: Emit, checked: Checked) -> None:
    length = path.stat().st_size
    checked.files += 1
    if length < config.index_file_size:
        what = f"the file has {length} bytes, those of this store {config.index_file_size}"
        _emit_index(emit, path, Code.INDEX_FILE_LENGTH, None, what)
        return
    with path.open("rb") as file:
        header = IndexHeader.unpack_from(file.read(INDEX_HEADER_SIZE))
        last = header.next_entry - 1
        if last < 1 or last >= config.max_index_num:
            if header.index_count not in (0, 1):
                _emit_index(emit, path, Code.INDEX_HEADER_WRONG, 0, f"it counts {last} keys")
            return
        ends = []
        for number in (1, last):
            file.seek(entry_position(config.max_hash_slot_num, number))
            ends.append(INDEX_ENTRY.unpack(file.read(INDEX_ENTRY.size))[1])
    checked.index_entries += 2
    if ends != [header.begin_phy_offset, header.end_phy_offset]:
        what = "it does not begin or end with its first and last key"
        _emit_index(emit, path, Code.INDEX_HEADER_WRONG, 0, what)


def _emit_index(emit: Emit, path: Path, code: Code, position: int | None, what: str) -> None:
    effect = "queries by key may miss messages, and new keys may overwrite old ones"
    fix = "rmqctl store rebuild index"
    name = f"{INDEX}/{path.name}"
    emit(Finding(code, Severity.WARNING, name, position, what, effect, fix))


def units_past_end(
    files: StoreFiles, next_offsets: dict[QueueKey, int], written: dict[QueueKey, int]
) -> list[Finding]:
    """Findings of units past the queues' ends: ``written`` is where the files' units end."""
    found: list[Finding] = []
    for key, end in sorted(written.items()):
        row, known = files.queue(*key), next_offsets.get(key, 0)
        if row is not None and end > known:
            what = f"{key[0]} queue {key[1]} offset {known}: the units point past the log's end"
            effect = "the messages do not exist; recovery cuts the units"
            _emit_unit(found.append, row, key, known, what, Code.UNIT_BEHIND_END, effect)
    return found


def newest_record_time(files: StoreFiles, next_offsets: dict[QueueKey, int]) -> int:
    """Store time (ms) of the newest record that a queue's last unit points at, 0 without one."""
    newest, log = 0, files.log
    for key, end in next_offsets.items():
        row = files.queue(*key)
        if row is None or not end:
            continue
        ((offset, size, _),) = units_at(row, np.array([end - 1])).tolist()
        if size > 0 and _problem_at(log, offset, size) is None:
            file = log.at(offset - offset % log.file_size)
            if file is not None:
                message = decode_record(file.view, offset % log.file_size, size)
                newest = max(newest, message.store_timestamp)
    return newest
