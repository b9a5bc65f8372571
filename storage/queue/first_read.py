"""The first read of a queue by a reader of thousands of queues: its end is compared with its files,
and a few of its units are kept.

A map of a file takes several system calls and page faults, and a reader has some hundred at a time.
So the first question about each queue of a large store opens all files, and so does each later one.
Here the units are read instead of mapped, and kept: those of a written message never change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from storage.coordination.shared_state import (
    STAGE_DELETE,
    STAGE_DISPATCH,
    SharedStateBounds,
    Word,
)
from storage.files.many_files import read_each
from storage.files.read_files import MAP_MAKERS, relist_each
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.log.record_reader import QueueKey

from .reader import QueueReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.coordination.shared_state import SharedState
    from storage.files.read_files import ReadOnlyFiles, StoreFiles
    from storage.read.bounds import Bounds

_KEPT: Final = 32
"""Units at the end of a queue that are kept."""
_MOST_ASKED_FOR: Final = 1024
"""Units at the end of a queue that are kept where they are asked for."""
_FEW_QUEUES: Final = 16
_MANY_QUEUES: Final = 2_000
"""Queues of which more than the last units may be kept: 40 MB of them at most."""
_MOST_KEPT: Final = 60_000
"""Queues of which units are kept, less than a kilobyte each."""
_unpack: Final = CQ_STORE_UNIT.unpack_from


class KeptUnits(NamedTuple):
    """Units of a queue in memory: from the queue offset ``first`` to before ``end``."""

    first: int
    end: int
    units: memoryview


class Unread(NamedTuple):
    """A queue that was not read before; ``wanted``: the units from this one on are asked for, -1
    for none."""

    topic: str
    queue_id: int
    row: ReadOnlyFiles
    wanted: int = -1


class _Wanted(NamedTuple):
    """What is to be read of a queue: its end, the units from ``start`` to one past the end, and
    from ``first`` on one unit, which may be among these."""

    end: int
    start: int
    first: int


def read_many(
    readers: dict[tuple[str, int], QueueReader],
    queues: Sequence[tuple[str, int]],
    files: StoreFiles,
    bounds: Bounds | None,
    generation: int,
    first: Sequence[int] = (),
) -> None:
    """Add readers of queues that have none, with their units; ``generation`` is that of the
    ``bounds`` before. Those of which more must be known get none, and of a few queues none does:
    their files may as well stay mapped. Nothing is done where a shared state is not the bounds.
    ``first``: see StoreView.each_queue_bounds."""
    if (
        len(queues) <= _FEW_QUEUES
        or len(readers) >= _MOST_KEPT
        or not isinstance(bounds, SharedStateBounds)
    ):
        return
    some: list[Unread] = []
    for number, (topic, queue_id) in enumerate(queues):
        row = None if (topic, queue_id) in readers else files.queue(topic, queue_id)
        if row is not None:
            is_asked_for = first and len(readers) + len(some) < _MANY_QUEUES
            some.append(Unread(topic, queue_id, row, first[number] if is_asked_for else -1))
    for unread, kept in zip(some, read_first(bounds.shared, some), strict=True):
        if kept is not None:
            topic, queue_id, row, _ = unread
            queue = QueueReader(QueueKey(topic, queue_id), row, bounds, None)
            queue.keep(kept, generation)
            readers.setdefault((topic, queue_id), queue)


def read_first(
    shared: SharedState, queues: Sequence[Unread]
) -> Sequence[tuple[KeptUnits, ...] | None]:
    """Read the first unit and the last ones of each queue, those that are asked for if they are
    few; the files of its row are listed anew.

    None if its files contradict its end in the shared state, and in each unusual case, of which
    ``storage.coordination.shared_state_check.queue_agrees`` is the judge: an empty queue, one that
    ends with a file, a file that is cut or not readable. Nothing is locked; the order of the reads
    is that of ``queue_agrees``.
    """
    words = shared.words
    if words[Word.STAGE] == STAGE_DELETE or MAP_MAKERS:
        return [None] * len(queues)
    log_end = int(words[Word.LOG_END])
    ends = [shared.queue_end(queue.topic, queue.queue_id) for queue in queues]
    wanted = [*map(_wanted, queues, ends, relist_each([queue.row for queue in queues]))]
    asked: list[tuple[str, int, int]] = []
    for queue, one in zip(queues, wanted, strict=True):
        if one is not None:
            asked.append(_part(queue.row, one.start, one.end + 1 - one.start))
            if one.first < one.start:
                asked.append(_part(queue.row, one.first, 1))
    paths, positions = [path for path, _, _ in asked], [position for _, position, _ in asked]
    parts = iter(read_each(paths, positions, [count for _, _, count in asked]))
    return [
        None
        if one is None
        else _checked(
            shared, log_end, one, next(parts), next(parts) if one.first < one.start else b""
        )
        for one in wanted
    ]


def _part(row: ReadOnlyFiles, first: int, count: int) -> tuple[str, int, int]:
    """A file, and where some units lie in it: position and bytes."""
    position = first * CQ_STORE_UNIT_SIZE
    within = position % row.file_size
    return row.path(position - within), within, count * CQ_STORE_UNIT_SIZE


def _wanted(queue: Unread, end: int, files: Sequence[int]) -> _Wanted | None:
    if not files or queue.row.opened:
        return None
    size = queue.row.file_size
    first, last = files[0] // CQ_STORE_UNIT_SIZE, files[-1] // CQ_STORE_UNIT_SIZE
    if not max(first, last) < end < last + size // CQ_STORE_UNIT_SIZE:
        return None
    start = max(last, end - _KEPT)
    if last <= queue.wanted < start and end - queue.wanted <= _MOST_ASKED_FOR:
        start = queue.wanted
    return _Wanted(end, start, first)


def _checked(
    shared: SharedState, log_end: int, wanted: _Wanted, units: bytes | None, head: bytes | None
) -> tuple[KeptUnits, ...] | None:
    """What was read of a queue, if it agrees with the shared state."""
    end, start, first = wanted
    count = (end - start) * CQ_STORE_UNIT_SIZE
    if units is None or head is None or len(units) != count + CQ_STORE_UNIT_SIZE:
        return None
    offset, length, _ = _unpack(units, count)
    if length > 0 and offset >= 0 and offset + length <= log_end:
        return None
    offset, length, _ = _unpack(units, count - CQ_STORE_UNIT_SIZE)
    words = shared.words
    in_batch = int(words[Word.TO]) if words[Word.STAGE] == STAGE_DISPATCH else 0
    if not (length > 0 and 0 <= offset <= max(in_batch, int(words[Word.LOG_END])) - length):
        return None
    kept = KeptUnits(start, end, memoryview(units)[:count])
    if len(head) == CQ_STORE_UNIT_SIZE:
        return kept, KeptUnits(first, first + 1, memoryview(head))
    return (kept,)
