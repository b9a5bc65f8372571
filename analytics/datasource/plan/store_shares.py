"""Shares of one store in the tables of progress: a large store is read by several tasks.

Each queue belongs to one share by a hash of its name, for ``lag_partials`` each block of a queue.
So the driver looks at no queue, and tasks need not know of each other. All shares of a store end at
one offset of its log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from analytics.report.stores import StoreRef
from storage.configs.consumer_offsets import CONSUMER_OFFSET_FILE
from storage.configs.progress import OFFSETS_FILE, OFFSETS_MARK
from storage.errors import RocketMQError
from storage.format.names import CONFIG, OURS

from .log_now import LogLooks

if TYPE_CHECKING:
    from .log_now import LogNow

PROGRESS_BYTES: Final = 512 << 10
"""Of the progress of groups, for a share: some ten thousand groups in queues, half a second."""
LOG_BYTES: Final = 8 << 30
"""Of the log, for a share that counts what is unread: some seconds."""
_MOST: Final = 64
_BLOCK: Final = 1 << 20
"""Messages of a queue that one share counts."""


class StoreShare(NamedTuple):
    """The share ``number`` of ``total`` shares."""

    ref: StoreRef
    number: int = 0
    total: int = 1
    log_end: int | None = None
    """Where the queues end; None: where they do when the store is looked at."""

    def has(self, topic: str, queue_id: int, block: int = 0) -> bool:
        """Whether a queue, or a block of it, belongs to this share."""
        name = f"{topic}/{queue_id}/{block}"
        return self.total == 1 or crc32(name.encode()) % self.total == self.number

    def pieces(self, topic: str, queue_id: int, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The messages of [first, end) that this share counts."""
        if self.total == 1:
            yield first, end
            return
        for start in range(first - first % _BLOCK, end, _BLOCK):
            if self.has(topic, queue_id, start // _BLOCK):
                yield max(first, start), min(end, start + _BLOCK)


def shares_of(
    stores: Sequence[StoreRef], *, counts: bool, looks: LogLooks | None = None
) -> list[StoreShare]:
    """The shares of some stores; ``counts``: unread messages are counted."""
    looks = looks or LogLooks()
    found: list[StoreShare] = []
    for ref in stores:
        log = _look(looks, ref)
        count = -(-_progress_bytes(ref) // PROGRESS_BYTES)
        if log is not None and counts:
            count = max(count, -(-(log.end - log.begin) // LOG_BYTES))
        count = 1 if log is None else min(max(1, count), _MOST)
        log_end = log.end if log is not None and count > 1 else None
        found += [StoreShare(ref, number, count, log_end) for number in range(count)]
    return found


def _look(looks: LogLooks, ref: StoreRef) -> LogNow | None:
    try:
        return looks.look(ref)
    except (RocketMQError, OSError):
        return None  # the task says why, or sees the store where the driver does not


def _progress_bytes(ref: StoreRef) -> int:
    sizes = [0]
    names = (CONFIG, CONSUMER_OFFSET_FILE), (OURS, OFFSETS_FILE), (OURS, OFFSETS_MARK)
    for path in (Path(ref.path, *name) for name in names):
        try:
            sizes.append(path.stat().st_size)
        except OSError:
            continue
    return max(sizes)
