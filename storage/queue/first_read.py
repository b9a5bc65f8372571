"""The first read of a queue by a reader of thousands of queues: its end is compared with its files,
and a few of its units are kept.

A map of a file takes several system calls and page faults, and a reader has some hundred at a time.
So the first question about each queue of a large store opens all files, and so does each later one.
Here the units are read instead of mapped, and kept: those of a written message never change.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.coordination.shared_state import (
    STAGE_DELETE,
    STAGE_DISPATCH,
    SharedStateBounds,
    Word,
)
from storage.files.read_files import MAP_MAKERS
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
# a pipe must not block until its other end is open
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_unpack: Final = CQ_STORE_UNIT.unpack_from


class KeptUnits(NamedTuple):
    """Units of a queue in memory: from the queue offset ``first`` to before ``end``."""

    first: int
    end: int
    units: memoryview


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
    for number, (topic, queue_id) in enumerate(queues):
        if (topic, queue_id) in readers:
            continue
        wanted = first[number] if first and len(readers) < _MANY_QUEUES else -1
        row = files.queue(topic, queue_id)
        found = None if row is None else read_first(bounds.shared, topic, queue_id, row, wanted)
        if row is not None and found is not None:
            queue = QueueReader(QueueKey(topic, queue_id), row, bounds, None)
            queue.keep(found, generation)
            readers.setdefault((topic, queue_id), queue)


def read_first(
    shared: SharedState, topic: str, queue_id: int, row: ReadOnlyFiles, wanted: int = -1
) -> tuple[KeptUnits, ...] | None:
    """Read the first unit and the last ones of a queue, those from ``wanted`` on if they are few;
    the files of ``row`` are listed anew.

    None if its files contradict its end in the shared state, and in each unusual case, of which
    ``storage.coordination.shared_state_check.queue_agrees`` is the judge: an empty queue, one that
    ends with a file, a file that is cut or not readable. Nothing is locked; the order of the reads
    is that of ``queue_agrees``.
    """
    words = shared.words
    if words[Word.STAGE] == STAGE_DELETE or MAP_MAKERS:
        return None
    log_end = int(words[Word.LOG_END])
    end = shared.queue_end(topic, queue_id)
    files = row.relist()
    if not files or row.opened:
        return None
    size = row.file_size
    first, last = files[0] // CQ_STORE_UNIT_SIZE, files[-1] // CQ_STORE_UNIT_SIZE
    if not max(first, last) < end < last + size // CQ_STORE_UNIT_SIZE:
        return None
    start = max(last, end - _KEPT)
    if last <= wanted < start and end - wanted <= _MOST_ASKED_FOR:
        start = wanted
    try:
        units = _read(row.path(files[-1]), (start - last) * CQ_STORE_UNIT_SIZE, end + 1 - start)
        head = b"" if start == first else _read(row.path(files[0]), 0, 1)
    except OSError:
        return None
    count = (end - start) * CQ_STORE_UNIT_SIZE
    if len(units) != count + CQ_STORE_UNIT_SIZE:
        return None
    offset, length, _ = _unpack(units, count)
    if length > 0 and offset >= 0 and offset + length <= log_end:
        return None
    offset, length, _ = _unpack(units, count - CQ_STORE_UNIT_SIZE)
    in_batch = int(words[Word.TO]) if words[Word.STAGE] == STAGE_DISPATCH else 0
    if not (length > 0 and 0 <= offset <= max(in_batch, int(words[Word.LOG_END])) - length):
        return None
    kept = KeptUnits(start, end, memoryview(units)[:count])
    if len(head) == CQ_STORE_UNIT_SIZE:
        return kept, KeptUnits(first, first + 1, memoryview(head))
    return (kept,)


def _read(path: str, position: int, count: int) -> bytes:
    fd = os.open(path, _FLAGS)
    try:
        return os.pread(fd, count * CQ_STORE_UNIT_SIZE, position)
    finally:
        os.close(fd)
