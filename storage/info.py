"""The basic facts about a store (``rmqctl store info``)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.coordination.lock_owners import find_holders

from .files.bounded import read_first
from .format.checkpoint import CHECKPOINT_SIZE, CheckpointData
from .format.names import ABORT, CHECKPOINT, COMMITLOG, INDEX, is_index_file_name

if TYPE_CHECKING:
    from .readonly import StoreView


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
    """Facts about one store; times are ms, None = unknown or none.

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


def store_info(view: StoreView) -> StoreInfo:
    """Collect the facts; reads the ends of every queue, not the messages."""
    root = view.root
    log_min, log_max = view.log_min_offset(), view.log_max_offset()
    messages = queues = 0
    first: int | None = None
    last: int | None = None
    for topic, queue_id in view.queues():
        bounds = view.queue_bounds(topic, queue_id)
        messages += bounds.max_offset - bounds.min_offset
        queues += bounds.max_offset > 0
        if bounds.min_offset == bounds.max_offset:
            continue
        earliest = view.earliest_message_time(topic, queue_id)
        if earliest is not None:
            first = earliest if first is None else min(first, earliest)
        latest = view.store_timestamp(topic, queue_id, bounds.max_offset - 1)
        if latest is not None:
            last = latest if last is None else max(last, latest)
    holders = find_holders(root)
    return StoreInfo(
        path=str(root),
        version=view.version_hint,
        clean_shutdown=not (root / ABORT).exists(),
        commitlog=CommitLogInfo(
            log_min, log_max, _count_files(root / COMMITLOG), max(0, log_max - log_min)
        ),
        queues=queues,
        messages=messages,
        index_files=_count_files(root / INDEX, index=True),
        first_timestamp=first,
        last_timestamp=last,
        checkpoint=_checkpoint(root / CHECKPOINT),
        writers=holders.writers,
        java_locked=holders.java_locked,
    )


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
