"""What a task reads of a store in an object store, a window after the other.

A window is a part of the task's ranges whose bytes are in memory at the same time: units first,
then the records that they name. Where records lie near each other, what is between them is fetched
with them; a file of the log is never read whole for some of its records (``pages.joined``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analytics.datasource.plan.planned import PLANNED, planned_view
from analytics.datasource.plan.ranges import tasks_of
from analytics.datasource.query.options import TaskSize
from analytics.datasource.rows.tag_runs import runs_of_tags
from analytics.errors import ObjectStoreError
from analytics.kernels.units import read_units
from analytics.object_store.objects import Objects
from analytics.object_store.steady import steadily
from analytics.object_store.store_copy import Asked, StoreCopy
from storage.format.names import COMMITLOG, file_name
from storage.format.record import RecordError, read_head

from .plan import StoreHead, of_addresses, unit_places

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import pyarrow as pa
    from numpy.typing import NDArray

    from analytics.datasource.plan.ranges import Range
    from storage.readonly import StoreView

    Read = Callable[[Sequence[Range]], Iterator[pa.RecordBatch]]

WINDOW: Final = 32 << 20
"""Bytes of a window, about; at most twice as many, unless one message has more."""
_HEAD_BYTES: Final = 128
"""A record before its body, with the store time."""
_LARGE: Final = 64 << 10
"""Records from here on are fetched without their bodies where no column needs these."""
_LONGEST: Final = (4 << 20) + (64 << 10)
"""A record that a unit calls longer is fetched as far as readers look at it."""


class Needs(NamedTuple):
    """What a reader reads of the log: records, with their bodies or without, or only their times;
    of ``tags`` and ``times`` (ms) those that it selects."""

    records: bool
    bodies: bool
    heads: bool
    tags: Collection[str] | None = None
    times: tuple[int, int] | None = None


def windowed(
    head: StoreHead, ranges: Sequence[Range], needs: Needs, read: Read
) -> Iterator[pa.RecordBatch]:
    """The batches of ranges of one store; ``read`` gives them for ranges of a folder. Raises its
    errors, and ObjectStoreError."""
    with StoreCopy(Objects(head.address), head.objects, head.patches) as copy:
        root = str(copy.root)
        PLANNED[root] = head.planned._replace(removed=copy.removed)
        try:
            for name in copy.changed(head.objects):
                copy.remove(name)
            here = [part._replace(path=root) for part in ranges]
            for window in _windows(copy, here, needs):
                with of_addresses([copy]):
                    yield from steadily([copy], partial(read, window))
        finally:
            PLANNED.pop(root, None)


def _windows(copy: StoreCopy, ranges: Sequence[Range], needs: Needs) -> Iterator[Sequence[Range]]:
    """Parts of the ranges whose bytes have been fetched."""
    left = deque(tasks_of(ranges, TaskSize(WINDOW, 1)))
    while left:
        window = left.popleft()
        if _fetch(copy, window, needs):
            yield window
            copy.drop()
        else:
            left.extendleft(reversed(_halves(window)))


def _fetch(copy: StoreCopy, window: Sequence[Range], needs: Needs) -> bool:
    """Fetch a window; False if that are too many bytes. Files that are not those of the plan any
    more are taken out of the folder, so that readers find them missing."""
    may_be_large = sum(part.messages for part in window) == 1
    while True:
        try:
            for asked in _stages(copy, window, needs):
                if not may_be_large and copy.lacking_bytes(asked) > 2 * WINDOW:
                    return False
                copy.fetch(asked)
        except ObjectStoreError:
            changed = copy.changed()
            if not changed:
                raise
        else:
            changed = copy.changed()
            if not changed:
                return True
        for name in changed:
            copy.remove(name)
        copy.drop()


def _stages(copy: StoreCopy, window: Sequence[Range], needs: Needs) -> Iterator[list[Asked]]:
    """What is to be fetched; each stage is known from the one before."""
    opened = planned_view(window[0].path)
    if opened is None:
        return
    with opened as view:
        config = view.config
        unit_size = config.mapped_file_size_consume_queue
        yield _by_name([place for part in window for place in unit_places(part, unit_size)])
        if not (needs.records or needs.heads):
            return
        places, sizes = _units(view, window, needs.tags)
        size = config.mapped_file_size_commit_log
        if needs.heads or needs.times is not None:
            yield _of_log(places, places + np.minimum(sizes, _HEAD_BYTES), size)
        if needs.records:
            if needs.times is not None:
                stored = view.store_timestamps(places, sizes)
                first, end = needs.times
                wanted = (stored < 0) | ((stored >= first) & (stored < end))
                places, sizes = places[wanted], sizes[wanted]
            starts, ends = places, places + np.minimum(sizes, _LONGEST)
            if not needs.bodies:
                large = sizes > _LARGE
                yield _of_log(places[large], places[large] + _HEAD_BYTES, size)
                starts, ends = _without_bodies(view, starts, ends)
            yield _of_log(starts, ends, size)


def _without_bodies(
    view: StoreView, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of large records the ranges before and after their bodies; others as they are."""
    found: list[tuple[int, int]] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        body = _body_of(view, start) if end - start > _LARGE else None
        if body is None or not start < body[0] <= body[1] <= end:
            found.append((start, end))
        else:
            found += [(start, body[0]), (body[1], end)]
    sides = np.array(found, np.int64).reshape(-1, 2)
    return sides[:, 0], sides[:, 1]


def _body_of(view: StoreView, place: int) -> tuple[int, int] | None:
    """Where the body of a record lies in the log; None if its head cannot be read."""
    position = place % view.config.mapped_file_size_commit_log
    file = view.files.log.at(place - position)
    if file is None:
        return None
    try:
        head = read_head(file.view, position)
    except RecordError:
        return None
    begin = place + head.head_size
    return begin, begin + max(0, head.body_length)


def _units(
    view: StoreView, window: Sequence[Range], tags: Collection[str] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places and sizes of the records that a reader reads, ascending."""
    parts = window
    if tags is not None:
        parts = [part for part, _ in runs_of_tags(((part, view) for part in window), tags)]
    found = []
    for part in parts:
        low, high = view.queue_bounds(part.topic, part.queue_id)
        first, end = max(part.first, low), min(part.end, high)
        if first < end:
            found.append(read_units(view, part.topic, part.queue_id, first, end))
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = np.concatenate([units.places for units in found])
    sizes = np.concatenate([units.sizes for units in found])
    order = np.argsort(places, kind="stable")
    order = order[(sizes[order] > 0) & (places[order] >= 0)]
    return places[order], sizes[order]


def _of_log(starts: NDArray[np.int64], ends: NDArray[np.int64], file_size: int) -> list[Asked]:
    """Ranges of the log, by file."""
    numbers = starts // file_size
    cuts = np.flatnonzero(np.diff(numbers)) + 1
    asked: list[Asked] = []
    for some in np.split(np.arange(len(starts)), cuts):
        if len(some):
            first = int(numbers[some[0]]) * file_size
            name = f"{COMMITLOG}/{file_name(first)}"
            asked.append((name, starts[some] - first, ends[some] - first))
    return asked


def _by_name(places: Sequence[tuple[str, int, int]]) -> list[Asked]:
    found: dict[str, list[tuple[int, int]]] = {}
    for name, start, end in places:
        found.setdefault(name, []).append((start, end))
    asked: list[Asked] = []
    for name, ranges in found.items():
        sides = np.array(ranges, np.int64)
        asked.append((name, sides[:, 0], sides[:, 1]))
    return asked


def _halves(window: Sequence[Range]) -> list[list[Range]]:
    """The first and the second part of each range; of single messages some and the others."""
    if all(part.messages == 1 for part in window):
        middle = len(window) // 2
        return [list(window[:middle]), list(window[middle:])]
    halves: list[list[Range]] = [[], []]
    for part in window:
        middle = part.first + -(-part.messages // 2)
        halves[0].append(part._replace(end=middle))
        if middle < part.end:
            halves[1].append(part._replace(first=middle))
    return halves
