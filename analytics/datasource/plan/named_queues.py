"""A view of a store for a task that knows from records of the log which messages of which queues it
reads: nothing else of the store is looked at.

A view of a store without a shared state begins with a look at the end of each queue. A batch of a
stream needs only the queues that its records name. Where the first and the last unit of each range
are in the files, those in between are, as units are written in the order of the log; else, and in a
store that was not closed cleanly, the usual view is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from storage.coordination.lock_owners import is_java_running
from storage.coordination.shared_state import SHARED_STATE_NAME
from storage.detect import detect_config
from storage.format.names import ABORT, COMMITLOG, OURS
from storage.readonly import StoreView

if TYPE_CHECKING:
    from .losses import Planned
    from .ranges import Range


class NamedQueues:
    """Implements ``storage.read.bounds.Bounds`` for the queues of some ranges, up to their ends."""

    def __init__(self, root: Path, ranges: Sequence[Range]) -> None:
        self._log_folder = root / COMMITLOG
        self._end = max((part.places[1] for part in ranges if part.places), default=0)
        self._ends: dict[tuple[str, int], int] = {}
        for part in ranges:
            queue = part.topic, part.queue_id
            self._ends[queue] = max(part.end, self._ends.get(queue, 0))

    def log_end(self) -> int:
        """The end of the planned part."""
        return self._end

    def finished_to(self) -> int:
        """The same."""
        return self._end

    def keys_from(self) -> int:
        """The same: keys are not sought."""
        return self._end

    def index_is_whole(self) -> bool:
        """False: it is not looked at."""
        return False

    def next_offset(self, topic: str, queue_id: int) -> int:
        """The end of the queue's range."""
        return self._ends.get((topic, queue_id), 0)

    def queues(self) -> list[tuple[str, int]]:
        """The queues of the ranges."""
        return list(self._ends)

    def files_generation(self) -> int:
        """Changes whenever a log file is added or deleted."""
        try:
            return self._log_folder.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Nothing is open."""


def view_of(path: str, planned: Sequence[Planned]) -> StoreView:
    """Open a store for what was planned of it. Raises the errors of ``StoreView.open``."""
    ranges = [part.named for part in planned if part.named is not None]
    root = Path(path)
    if len(ranges) < len(planned) or (root / OURS / SHARED_STATE_NAME).exists():
        return StoreView.open(path)
    if (root / ABORT).exists() and not is_java_running(root):
        return StoreView.open(path)
    view = StoreView(root, detect_config(root, reading=True), NamedQueues(root, ranges))
    if all(part.is_there(view) for part in ranges):
        return view
    view.close()
    return StoreView.open(path)
