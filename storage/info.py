"""The basic facts about a store (``rmqctl store info``)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.coordination.lock_owners import find_holders
from storage.queue.reader import QueueBounds

from .files.bounded import read_first
from .format.checkpoint import CHECKPOINT_SIZE, CheckpointData
from .format.names import ABORT, CHECKPOINT, COMMITLOG, INDEX, is_index_file_name
from .known import of_all

if TYPE_CHECKING:
    from .readonly import StoreView

KnownTimes = dict[tuple[str, int], tuple[QueueBounds, int | None, int | None]]
"""Of queues: the bounds, and the store times (ms) of the first and the last message then."""
_UNKNOWN: Final = (-1, None)
_AT_ONCE: Final = 100
"""Queues whose bounds are read before their messages: their files are still mapped then."""
_KNOWN_AT_ONCE: Final = 2_000
"""The same where most are as before. Each time the log's folder is looked at, and a thread that
does so every half millisecond keeps others from running."""


@dataclass(frozen=True, slots=True)
class CommitLogInfo:
    """The log: its first and last offset, number of files, and bytes of records."""

    min_offset: int
    max_offset: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """Store times (ms) up to which log, queues and full index files are on the device."""

    physic_msg_timestamp: int | None
    logics_msg_timestamp: int | None
    index_msg_timestamp: int | None


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """Facts about one store; times are ms, None = none, or unknown in one of the queues.

    ``queues`` counts queues that ever had a message, ``messages`` those still readable.
    ``version`` is the writer of the store, as far as it is known. ``writers`` are pids.
    """

    path: str
    version: str
    clean_shutdown: bool
    commitlog: CommitLogInfo
    queues: int
    messages: int
    index_files: int
    first_timestamp: int | None
    last_timestamp: int | None
    checkpoint: CheckpointInfo | None
    writers: tuple[int, ...]
    java_locked: bool

    def as_dict(self) -> dict[str, Any]:
        """The same with the keys of the command line's JSON, in its order."""
        return asdict(self)


def store_info(view: StoreView, known: KnownTimes | None = None) -> StoreInfo:
    """Collect the facts; reads the ends of every queue, not the messages.

    ``known`` is what an earlier call has left there: of queues with the same bounds nothing is
    read again.
    """
    root = view.root
    log_min, log_max = view.log_min_offset(), view.log_max_offset()
    known = {} if known is None else known
    before, queues = known.copy(), view.queues()
    known.clear()
    at_once = _KNOWN_AT_ONCE if before else _AT_ONCE
    for start in range(0, len(queues), at_once):
        some = queues[start : start + at_once]
        for place, bounds in zip(some, view.each_queue_bounds(some), strict=True):
            earlier = before.get(place)
            if earlier is None or earlier[0] != bounds or None in earlier:
                earlier = bounds, *_times(view, place, bounds)
            known[place] = earlier
    all_bounds = [bounds for bounds, _, _ in known.values()]
    held = [times for times in known.values() if times[0].min_offset < times[0].max_offset]
    holders = find_holders(root)
    return StoreInfo(
        path=str(root),
        version=view.version_hint,
        clean_shutdown=not (root / ABORT).exists(),
        commitlog=CommitLogInfo(
            log_min, log_max, _count_files(root / COMMITLOG), max(0, log_max - log_min)
        ),
        queues=sum(bounds.max_offset > 0 for bounds in all_bounds),
        messages=sum(bounds.max_offset - bounds.min_offset for bounds in all_bounds),
        index_files=_count_files(root / INDEX, index=True),
        first_timestamp=of_all(min, (earliest for _, earliest, _ in held)),
        last_timestamp=of_all(max, (latest for _, _, latest in held)),
        checkpoint=_checkpoint(root / CHECKPOINT),
        writers=holders.writers,
        java_locked=holders.java_locked,
    )


def _times(
    view: StoreView, place: tuple[str, int], bounds: QueueBounds
) -> tuple[int | None, int | None]:
    """The store times of the first and the last message."""
    first, last = bounds.min_offset, bounds.max_offset - 1
    found = view.places(*place, {first, last}, bounds)
    return found.get(first, _UNKNOWN)[1], found.get(last, _UNKNOWN)[1]


def _checkpoint(path: Path) -> CheckpointInfo | None:
    try:
        data = CheckpointData.unpack(read_first(path, CHECKPOINT_SIZE))
    except OSError:
        return None
    return CheckpointInfo(
        data.physic_msg_timestamp or None,
        data.logics_msg_timestamp or None,
        data.index_msg_timestamp or None,
    )


def _count_files(folder: Path, *, index: bool = False) -> int:
    try:
        names = [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return sum(is_index_file_name(name) if index else name.isdigit() for name in names)
