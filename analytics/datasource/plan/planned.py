"""Views of stores whose bounds are known from the plan of a query.

A task that reads a part of some queues needs no look at all other queues, from which the bounds of
a store without a shared state come. Its folder may hold nothing else (``object_reader``).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.queue.reader import QueueBounds
from storage.readonly import StoreView

if TYPE_CHECKING:
    from storage.config import StoreConfig


class PlannedStore(NamedTuple):
    """What a plan says of a store."""

    config: StoreConfig
    log_end: int
    queues: Mapping[tuple[str, int], QueueBounds]
    """Of a task."""
    removed: Set[str] = frozenset()
    """Files that were deleted since."""


PLANNED: Final[dict[str, PlannedStore]] = {}
"""By the folder, while a task reads it."""


def planned_view(path: str) -> StoreView | None:
    """A view of the store in a folder by its plan; None without one."""
    planned = PLANNED.get(path)
    return None if planned is None else _PlannedView(Path(path), planned)


class _PlannedView(StoreView):
    """A view with the bounds of the plan, until a file was deleted."""

    def __init__(self, root: Path, planned: PlannedStore) -> None:
        super().__init__(root, planned.config, _PlannedBounds(planned))
        self._planned = planned

    def queue_bounds(self, topic: str, queue_id: int) -> QueueBounds:
        planned = self._planned
        if planned.removed:
            return super().queue_bounds(topic, queue_id)
        return planned.queues.get((topic, queue_id), QueueBounds(0, 0))


class _PlannedBounds:
    """Implements ``storage.read.bounds.Bounds`` for a store that does not change."""

    def __init__(self, planned: PlannedStore) -> None:
        self._planned = planned

    def log_end(self) -> int:
        return self._planned.log_end

    def finished_to(self) -> int:
        return self._planned.log_end

    def keys_from(self) -> int:
        return self._planned.log_end

    def index_is_whole(self) -> bool:
        return False

    def next_offset(self, topic: str, queue_id: int) -> int:
        found = self._planned.queues.get((topic, queue_id))
        return 0 if found is None else found.max_offset

    def queues(self) -> list[tuple[str, int]]:
        return list(self._planned.queues)

    def files_generation(self) -> int:
        return len(self._planned.removed)

    def close(self) -> None:
        """Nothing is held."""
