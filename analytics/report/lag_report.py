"""Making a report: scan all stores, count unread messages, combine the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.engines.local import LocalEngine
from analytics.engines.task import CountTask, do, forget, together
from analytics.lag.selection import Choice
from storage.errors import CorruptFileError, RocketMQError
from storage.read.log_offsets import first_at
from storage.readonly import StoreView

from .copies import lasting_mark_at, mark_at, sort_out
from .partial import PartialReport, share_of
from .report import Report, make_report
from .scan import StoreScan, plan, scan, without_known_losses
from .stores import StoreRef

if TYPE_CHECKING:
    from analytics.engines import Engine
    from analytics.kernels.partials import Partials

ROUND_BYTES = 256 << 20
"""Counts that are collected here at once, at most: Spark's JVM has 1 GB."""
_CELL_BYTES: Final = 64


class UnreadableStore(NamedTuple):
    """A store that could not be scanned."""

    ref: StoreRef
    reason: str
    denied: bool = False
    """Because of missing permission."""
    damaged: bool = False
    """Because of a damaged file of settings or progress."""


class MadeReport(NamedTuple):
    """A report, and what it lacks."""

    report: Report
    unreadable: tuple[UnreadableStore, ...]
    shares: Sequence[PartialReport]
    """The partial report of each store."""
    is_damaged: bool = False
    """Stores have lost messages, or queues lack units: what can be read was counted."""


def lag_report(
    engine: Engine,
    refs: Sequence[StoreRef],
    as_of: int,
    choice: Choice,
    *,
    exact: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> MadeReport:
    """Report on some stores, as of a time (ms) for ages.

    A store that cannot be read is left out, and named in the warnings. Copies of one log count
    once: the longest. ``exact`` reads every unread record instead of relying on the order of store
    times. ``progress`` is called with the number of counted messages and of all messages.
    """
    who = LocalEngine() if engine.is_here else engine
    scanned = who.map(partial(try_scan, as_of=as_of, choice=choice), refs)
    failed = [one for one in scanned if isinstance(one, UnreadableStore)]
    scans = [one for one in scanned if isinstance(one, StoreScan)]
    with without_known_losses(scans):
        return _made(engine, scans, failed, as_of, exact=exact, progress=progress)


def _made(
    engine: Engine,
    scans: Sequence[StoreScan],
    failed: list[UnreadableStore],
    as_of: int,
    *,
    exact: bool,
    progress: Callable[[int, int], None] | None,
) -> MadeReport:
    """The report of stores that have been scanned; ``failed`` could not be."""
    scans, notes = _without_copies(scans, LocalEngine() if engine.is_here else engine, failed)
    total = sum(one.backlog for one in scans)
    done = 0
    is_damaged = any(one.is_damaged for one in scans)

    def tell(more: int) -> None:
        if progress is not None:
            progress(done + more, total)

    shares: list[PartialReport] = []
    for some in _rounds(scans):
        for one, found in zip(some, _counted(engine, some, tell, exact=exact), strict=True):
            if isinstance(found, UnreadableStore):
                failed.append(found)
                continue
            shares.append(share_of(one, found))
            is_damaged = is_damaged or found.is_damaged
        done += sum(one.backlog for one in some)
    warnings = [*(f"{one.ref.broker}: not read: {one.reason}" for one in failed), *notes]
    report = make_report(shares, as_of, warnings)
    return MadeReport(report, tuple(failed), shares, is_damaged)


def _without_copies(
    scans: Sequence[StoreScan], who: Engine, failed: list[UnreadableStore]
) -> tuple[list[StoreScan], Sequence[str]]:
    """The scans without those of copies; marks of logs that have parted show that to a reader of
    their kept reports. ``failed`` gets the stores that cannot be read any more, unless they are
    copies by their marks."""
    while True:
        looks = _ScanLooksUp(who)
        found = sort_out(scans, looks)
        gone = [
            looks.gone[ref] for ref in (scans[at].ref for at in found.kept) if ref in looks.gone
        ]
        if not gone:
            break
        failed += gone
        lost = {one.ref for one in gone}
        scans = [one for one in scans if one.ref not in lost]
    kept = [
        replace(scans[number], marks=scans[number].marks | found.differences[number])
        for number in found.kept
    ]
    return kept, [*found.left_out, *found.parted]


class _ScanLooksUp:
    """Looks records of the logs of scanned stores up, where an engine works; ``gone`` gets those
    that cannot be read any more: nothing is known of their records."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.gone: dict[StoreRef, UnreadableStore] = {}

    def last_marks(self, logs: Sequence[StoreScan]) -> Sequence[str | None]:
        """The mark of the last record of each log, None where it is not known."""
        found = self._engine.map(_last_mark, [(one.ref, one.log[1]) for one in logs])
        self._note_gone(found)
        return [None if isinstance(one, UnreadableStore) else one for one in found]

    def marks_at(
        self, asked: Sequence[tuple[StoreScan, Sequence[int]]]
    ) -> Sequence[Sequence[str | None]]:
        """The marks of records at log offsets of logs, None where no record begins."""
        found = self._engine.map(_marks_at, [(one.ref, places) for one, places in asked])
        self._note_gone(found)
        return [
            [None] * len(places) if isinstance(one, UnreadableStore) else one
            for one, (_, places) in zip(found, asked, strict=True)
        ]

    def _note_gone(self, found: Sequence[object]) -> None:
        self.gone.update((one.ref, one) for one in found if isinstance(one, UnreadableStore))


def _last_mark(log: tuple[StoreRef, int]) -> str | UnreadableStore | None:
    ref, end = log
    last: int | None = None
    try:
        with StoreView.open(ref.path) as view:
            view.reads_log_at_random()
            for topic, queue_id in view.queues():
                low, high = view.queue_bounds(topic, queue_id)
                unit = view.unit(topic, queue_id, high - 1)
                if unit is not None and unit[0] >= end:  # stored since the scan
                    high = first_at(view, topic, queue_id, end, low, high)
                    unit = view.unit(topic, queue_id, high - 1)
                if unit is not None and (last is None or unit[0] > last):
                    last = unit[0]
            return None if last is None else lasting_mark_at(view, last)
    except (RocketMQError, OSError) as error:
        return _unreadable(ref, error)


def _marks_at(log: tuple[StoreRef, Sequence[int]]) -> Sequence[str | None] | UnreadableStore:
    ref, places = log
    try:
        with StoreView.open(ref.path) as view:
            view.reads_log_at_random()
            return [mark_at(view, place) for place in places]
    except (RocketMQError, OSError) as error:
        return _unreadable(ref, error)


def _rounds(scans: Sequence[StoreScan]) -> Iterator[Sequence[StoreScan]]:
    """Groups of stores whose counts are collected together: all, unless there are very many."""
    some: list[StoreScan] = []
    size = 0
    for one in scans:
        first, last = one.minutes
        most = sum(last - first + 1 + len(queue.cuts) for queue in one.queues) * _CELL_BYTES
        if some and size + most > ROUND_BYTES:
            yield some
            some, size = [], 0
        some.append(one)
        size += most
    if some:
        yield some


def _counted(
    engine: Engine, scans: Sequence[StoreScan], tell: Callable[[int], None], *, exact: bool
) -> list[Partials | UnreadableStore]:
    """The unread messages in each store. ``tell`` is called with the number of counted messages.

    A store in which any task finds that times go back is counted again, by each message's time.
    """
    works = plan(scans, engine.cores, exact=exact)
    sizes = [sum(task.end - task.first for task in work.tasks) for work in works]
    by_store: dict[str, list[Partials]] = defaultdict(list)
    gone: dict[str, UnreadableStore] = {}
    refs = {one.ref.path: one.ref for one in scans}

    def add(works: Sequence[CountTask], parts: Sequence[Partials | UnreadableStore]) -> None:
        for work, part in zip(works, parts, strict=True):
            if isinstance(part, UnreadableStore):
                gone[work.root] = part._replace(ref=refs[work.root])
            else:
                by_store[work.root].append(part)

    try:
        add(works, engine.map(_try_count, works, lambda done: tell(sum(sizes[:done]))))
        wrong = {root for root, parts in by_store.items() if any(part.disorder for part in parts)}
        again = [work._replace(each_time=True) for work in works if work.root in wrong]
        by_store.update((root, []) for root in wrong)
        add(again, engine.map(_try_count, again))
        for root in wrong:
            by_store[root] = [part._replace(disorder=True) for part in by_store[root]]
    finally:
        forget()
    return [gone.get(one.ref.path) or together(by_store[one.ref.path]) for one in scans]


def _try_count(work: CountTask) -> Partials | UnreadableStore:
    """Count one piece, or give the reason why its store cannot be opened any more."""
    try:
        return do(work)
    except (RocketMQError, OSError) as error:
        return _unreadable(StoreRef("", work.root), error)


def try_scan(ref: StoreRef, as_of: int, choice: Choice) -> StoreScan | UnreadableStore:
    """Scan a store, or give the reason why that fails."""
    try:
        return scan(ref, as_of, choice)
    except (RocketMQError, OSError) as error:
        return _unreadable(ref, error)


def _unreadable(ref: StoreRef, error: RocketMQError | OSError) -> UnreadableStore:
    if isinstance(error, RocketMQError):
        return UnreadableStore(ref, str(error), damaged=isinstance(error, CorruptFileError))
    denied = isinstance(error, PermissionError)
    reason = "no permission" if denied else error.strerror or type(error).__name__
    return UnreadableStore(ref, f"{error.filename or ref.path} cannot be read: {reason}", denied)
