"""The plan of a query over stores in object stores: what its tasks need to know of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

import numpy as np

from analytics.datasource.plan.log_now import LogLooks, look_at_queues
from analytics.datasource.plan.planned import PlannedStore
from analytics.datasource.query.errors import DamagedError, DataLossError, OptionError
from analytics.errors import ObjectStoreError
from analytics.object_store.address import is_address
from analytics.object_store.objects import ObjectInfo, Objects
from analytics.object_store.steady import run
from analytics.object_store.store_copy import StoreCopy
from analytics.report.stores import StoreRef
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.names import ABORT, COMMITLOG, CONSUMEQUEUE, file_name, parse_file_name
from storage.read.scan_bounds import ScanBounds
from storage.readonly import StoreView

if TYPE_CHECKING:
    from analytics.datasource.plan.log_now import LogNow
    from analytics.datasource.plan.ranges import Range

T = TypeVar("T")
logger = logging.getLogger("rmqctl.datasource")
_FIRST_BYTES: Final = 4096
"""At the beginning and after the end of a queue."""
_LONGEST: Final = (4 << 20) + (64 << 10)
_AFTER_LOG: Final = 16 << 10


class StoreHead(NamedTuple):
    """What a task needs to know of a store to read ranges of its queues. Pickles."""

    address: str
    planned: PlannedStore
    objects: dict[str, ObjectInfo]
    """The files of the log, and those of the ranges."""
    patches: dict[str, list[tuple[int, bytes]]]
    """Units that the queues' files lack: the log has their records. By file, with positions."""


class ObjectTask(NamedTuple):
    """Ranges of one store; no head: in a folder."""

    head: StoreHead | None
    ranges: Sequence[Range]


class FolderLooks(LogLooks):
    """Looks at logs by the queues of their stores: a folder of a copy has no log to be read by
    system calls, and no shared state."""

    def look(self, ref: StoreRef) -> LogNow:
        """Look at the log of a store. Raises the errors of ``StoreView.open``."""
        return look_at_queues(ref)


class Folders:
    """The stores of a query as folders: those at addresses are copies, as long as this is open."""

    def __init__(self, stores: Sequence[StoreRef], *, skip: bool = False) -> None:
        """``skip``: leave out, with a line in the log, a store that cannot be listed. Raises
        ObjectStoreError."""
        self.refs: tuple[StoreRef, ...] = ()
        self._copies: dict[str, tuple[str, StoreCopy]] = {}
        self._open = ExitStack()
        try:
            for ref in stores:
                try:
                    self.refs += (self._folder(ref),)
                except ObjectStoreError as error:
                    if not skip:
                        raise
                    logger.warning("%s: left out, it cannot be read: %s", ref.broker, error)
        except BaseException:
            self._open.close()
            raise

    def _folder(self, ref: StoreRef) -> StoreRef:
        if not is_address(ref.path):
            return ref
        copy = self._open.enter_context(whole_copy(ref.path))
        root = str(copy.root)
        self._copies[root] = ref.path, copy
        return ref._replace(path=root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def run(self, work: Callable[[], T]) -> T:
        """Call a reader of the folders, see ``object_store.steady``. What it raises about a folder
        is about the address then."""
        copies = [copy for _, copy in self._copies.values()]
        with of_addresses(copies):
            return run(copies, work)

    def address(self, ref: StoreRef) -> StoreRef:
        """The store of a folder as it was named."""
        named = self._copies.get(ref.path)
        return ref if named is None else ref._replace(path=named[0])

    def tasks(self, ranges: Sequence[Range], views: dict[str, StoreView]) -> Iterator[ObjectTask]:
        """Ranges by store. ``views`` keeps those that are opened."""
        for path, found in groupby(ranges, lambda part: part.path):
            some = list(found)
            if path not in self._copies:
                yield ObjectTask(None, some)
                continue
            if path not in views:
                views[path] = StoreView.open(path)
            address, copy = self._copies[path]
            yield ObjectTask(_head(address, copy, views[path], some), some)


@contextmanager
def of_addresses(copies: Sequence[StoreCopy]) -> Iterator[None]:
    """Make errors about folders of copies errors about their addresses."""
    try:
        yield
    except ObjectStoreError:
        raise
    except Exception as error:
        text = str(error)
        for copy in copies:
            text = copy.renamed(text)
        if text == str(error):
            raise
        if isinstance(error, OptionError | DataLossError | DamagedError):
            raise type(error)(text) from None
        raise ObjectStoreError(text) from None


def whole_copy(address: str) -> StoreCopy:
    """A store at an address as a folder, with the ends of its queues. Raises ObjectStoreError."""
    objects = Objects(address)
    copy = StoreCopy(objects, objects.listed())
    try:
        doubt = copy.doubt()
        if doubt is not None:
            logger.warning("%s", doubt)
        last: list[tuple[int, int]] = []
        objects.each([partial(_fetch_end, copy, row, last) for row in _queue_files(copy.infos)])
        _fetch_log(copy, max(last, default=(0, 0)))
    except BaseException:
        copy.close()
        raise
    return copy


def _queue_files(infos: Mapping[str, ObjectInfo]) -> list[list[str]]:
    """The files of each queue, ascending."""
    names = sorted(name for name, info in infos.items() if info.size and _is_unit_file(name))
    return [list(row) for _, row in groupby(names, lambda name: name.rpartition("/")[0])]


def _is_unit_file(name: str) -> bool:
    parts = name.split("/")
    return parts[0] == CONSUMEQUEUE and len(parts) == 4 and parse_file_name(parts[3]) is not None


def _fetch_end(copy: StoreCopy, names: Sequence[str], last: list[tuple[int, int]]) -> None:
    """Fetch what a search for the end of a queue looks at, and the queue's begin; add the last
    unit. It only saves requests one after the other: what counts is what readers look at."""
    copy.fetch_one(names[0], 0, _FIRST_BYTES)
    low, high = 0, copy.infos[names[-1]].size // CQ_STORE_UNIT_SIZE
    newest = 0, 0
    while low < high:
        middle = (low + high) // 2
        at = middle * CQ_STORE_UNIT_SIZE
        offset, size, _ = CQ_STORE_UNIT.unpack(copy.fetch_one(names[-1], at, at + 20))
        if offset >= 0 and size > 0:
            low, newest = middle + 1, (offset, size)
        else:
            high = middle
    end = low * CQ_STORE_UNIT_SIZE
    copy.fetch_one(names[-1], end, end + _FIRST_BYTES)
    last.append(newest)


def _fetch_log(copy: StoreCopy, newest: tuple[int, int]) -> None:
    """Fetch the newest record that a queue names, and what is after it: there the search for the
    end of the log begins. It would go from unit to unit as long as it found zeros. Of a store that
    was not closed it looks at the beginning of the last files, too."""
    files = {offset: name for name in copy.infos if (offset := _log_offset(name)) is not None}
    offset, size = newest
    first = max((one for one in files if one <= offset), default=None)
    asked: dict[str, list[tuple[int, int]]] = {}
    if first is not None:
        end = offset - first + min(size, _LONGEST) + _AFTER_LOG
        asked[files[first]] = [(offset - first, end)]
    if ABORT in copy.infos:
        for one in sorted(files)[-2:]:
            asked.setdefault(files[one], []).append((0, _FIRST_BYTES))
    for name, sides in asked.items():
        pairs = np.array(sides, np.int64)
        copy.fetch([(name, pairs[:, 0], pairs[:, 1])])


def _head(address: str, copy: StoreCopy, view: StoreView, ranges: Sequence[Range]) -> StoreHead:
    config = view.config
    queues = {(part.topic, part.queue_id) for part in ranges}
    planned = PlannedStore(
        config, view.log_max_offset(), {queue: view.queue_bounds(*queue) for queue in queues}
    )
    unit_size = config.mapped_file_size_consume_queue
    names = _log_files(copy, view, ranges)
    patches: dict[str, list[tuple[int, bytes]]] = {}
    for part in ranges:
        names += [name for name, _, _ in unit_places(part, unit_size) if name in copy.infos]
        for at, units in _rebuilt(view, part):
            _patch(patches, part, at, units, unit_size)
    return StoreHead(address, planned, {name: copy.infos[name] for name in names}, patches)


def _log_files(copy: StoreCopy, view: StoreView, ranges: Sequence[Range]) -> list[str]:
    """The files of the log with the records of ranges: all, where a unit at an end of a range
    names no record."""
    places: list[int] = []
    for part in ranges:
        for at in (part.first, part.end - 1):
            unit = view.unit(part.topic, part.queue_id, at)
            if unit is None or unit[1] <= 0 or unit[0] < 0:
                return [name for name in copy.infos if _log_offset(name) is not None]
            places.append(unit[0])
    first = min(places) - min(places) % view.config.mapped_file_size_commit_log
    return [
        name
        for name in copy.infos
        if (offset := _log_offset(name)) is not None and first <= offset <= max(places)
    ]


def _log_offset(name: str) -> int | None:
    """The first offset of a file of the log; None for other files."""
    parts = name.split("/")
    return parse_file_name(parts[1]) if parts[0] == COMMITLOG and len(parts) == 2 else None


def unit_places(part: Range, file_size: int) -> Iterator[tuple[str, int, int]]:
    """The files that hold the units of a range, and where in them."""
    start, end = part.first * CQ_STORE_UNIT_SIZE, part.end * CQ_STORE_UNIT_SIZE
    while start < end:
        first = start - start % file_size
        stop = min(end, first + file_size)
        yield _unit_file(part, first), start - first, stop - first
        start = stop


def _unit_file(part: Range, first: int) -> str:
    return f"{CONSUMEQUEUE}/{part.topic}/{part.queue_id}/{file_name(first)}"


def _rebuilt(view: StoreView, part: Range) -> Iterator[tuple[int, bytes]]:
    """Units of a range that were found in the log, not in the queue's files; zeros between."""
    bounds = view.bounds
    if not isinstance(bounds, ScanBounds):
        return
    at = max(part.first, bounds.file_units(part.topic, part.queue_id))
    while at < part.end:
        units = view.unit_bytes(part.topic, part.queue_id, at, part.end - at)
        if not units:
            following = bounds.rebuilt.next_run(part.topic, part.queue_id, at)
            count = min(part.end, following or part.end) - at
            units = bytes(count * CQ_STORE_UNIT_SIZE)
        yield at, units
        at += len(units) // CQ_STORE_UNIT_SIZE


def _patch(
    patches: dict[str, list[tuple[int, bytes]]], part: Range, at: int, units: bytes, size: int
) -> None:
    whole = part._replace(first=at, end=at + len(units) // CQ_STORE_UNIT_SIZE)
    taken = 0
    for name, start, end in unit_places(whole, size):
        patches.setdefault(name, []).append((start, units[taken : taken + end - start]))
        taken += end - start
