"""Partial reports that were kept beside their stores, combined: a report without the stores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.errors import KeptError
from analytics.kernels.partials import MINUTE_MS, UNKNOWN_MINUTE
from analytics.lag.health import Health
from analytics.lag.lag_snapshot import GroupLag
from analytics.lag.queue_position import QueuePosition
from analytics.lag.selection import Choice
from analytics.lag.totals import QueueLag
from analytics.report.amounts import Amounts, Row, added_up
from analytics.report.copies import without_copies
from analytics.report.lag_report import MadeReport, UnreadableStore
from analytics.report.partial import PartialReport, Place, Tags, about_orphans
from analytics.report.report import make_report
from analytics.report.scan import INCOMPLETE, Orphan, ScannedDelays, StoreWarning
from analytics.report.stores import StoreRef
from storage.counted import counted

from .earlier_runs import add_stores, without_proven
from .logs import DAY_MS, looked_at, newest_of_logs, same_names
from .reading import UNREADABLE, all_runs, rows_of, table_of
from .tables import Kept

if TYPE_CHECKING:
    from analytics.engines import Engine

_PER_CORE: Final = 3
_OLD_MS: Final = 600_000
"""Age difference (to the report) above which a broker's partial report is mentioned."""
_AHEAD_MS: Final = 600_000
"""By which the clock of a broker may be ahead of the one here."""
_GONE_MS: Final = 8 * DAY_MS
"""Of two brokers of one name: longer than a week, as reports may be kept once a week."""


def find_kept(
    folders: Sequence[str],
    until: int | None,
    asked: str = "--as-of",
    *,
    now_ms: int | None = None,
    later: list[Kept] | None = None,
) -> list[Kept]:
    """The newest partial reports of all brokers, not after ``until`` (ms), by name.

    Brokers that have one name count each: see ``logs``. One of which nothing was kept for eight
    days counts as gone if there is something newer by its name. Without ``until`` those that are
    dated later than ``now_ms`` are left out, as the clock of their broker was wrong: ``later`` gets
    them. KeptError without any; it names ``asked``, the option that ``until`` is from. Raises
    NoArrowError, OSError and KeptFileError.
    """
    left_out = [] if later is None else later
    latest = until
    if latest is None and now_ms is not None:
        latest = now_ms + _AHEAD_MS
    by_name: dict[str, list[Kept]] = defaultdict(list)
    for folder in folders:
        runs = all_runs(folder)
        if not runs:
            raise KeptError(folder)
        for kept in runs:
            if latest is None or kept.as_of <= latest:
                by_name[kept.broker].append(kept)
            elif until is None:
                left_out.append(kept)
    if not by_name:
        later_file = _file_of(left_out[0]) if left_out else None
        raise KeptError(", ".join(folders), as_old=asked, later=later_file)
    for broker, runs_of_name in by_name.items():
        last = max(kept.as_of for kept in runs_of_name)
        recent = (kept for kept in runs_of_name if kept.as_of > last - _GONE_MS)
        by_name[broker] = list(looked_at(recent))
    stores: dict[Kept, Row] = {}
    unreadable: dict[Kept, str] = {}
    several: list[Kept] = []
    for broker, runs_of_name in by_name.items():
        if len({(kept.as_of, kept.folder) for kept in runs_of_name}) > 1:
            by_name[broker] = without_proven(runs_of_name, stores, unreadable)
            several += by_name[broker]
    add_stores(several, stores, unreadable)
    return [
        kept
        for _, runs_of_name in sorted(by_name.items())
        for of_log in newest_of_logs(runs_of_name, stores)
        for kept in of_log
    ]


def gathered_report(
    engine: Engine,
    found: Sequence[Kept],
    choice: Choice,
    as_of: int | None = None,
    *,
    only_figures: bool = False,
) -> MadeReport:
    """Report on kept data, as of a time (ms) for ages: None is the newest partial report's.

    ``only_figures`` leaves out what is counted by minute and by tag.

    Rates, health and dates of deletion are those of each partial report's own moment. Partial
    reports of one moment give the report that their stores would have given then, number for
    number.
    """
    moment = as_of if as_of is not None else max((kept.as_of for kept in found), default=0)
    each = -(-len(found) // (engine.cores * _PER_CORE)) or 1
    bins = [found[first : first + each] for first in range(0, len(found), each)]
    results = [
        one
        for read in engine.map(partial(_try_all, only_figures=only_figures), bins)
        for one in read
    ]
    failed = tuple(one for one in results if isinstance(one, UnreadableStore))
    shares, notes = without_copies([one for one in results if isinstance(one, PartialReport)])
    shares = [_chosen(share, choice) for share in shares]
    warnings = [
        *(f"{one.ref.broker}: not read: {one.reason}" for one in failed),
        *notes,
        *same_names(found),
        *old_ones(found, moment),
    ]
    is_damaged = any(share.is_damaged for share in shares)
    return MadeReport(make_report(shares, moment, warnings), failed, shares, is_damaged)


def later_ones(later: Iterable[Kept], now_ms: int) -> list[str]:
    """A sentence for each broker with reports that :func:`find_kept` has left out."""
    by_broker: dict[str, list[Kept]] = defaultdict(list)
    for kept in later:
        if not kept.number:
            by_broker[kept.broker].append(kept)
    sentences = []
    for broker, runs in sorted(by_broker.items()):
        last = max(runs, key=lambda kept: kept.as_of)
        ahead_s = (last.as_of - now_ms) // 1000
        sentences.append(
            f"{broker}: left out {counted(len(runs), 'kept report')} dated later than now, by "
            f"up to {ahead_s} s, as {_file_of(last)}; remove what a wrong clock has dated"
        )
    return sentences


def _file_of(kept: Kept) -> Path:
    """A file of a run, or the folder where it is joined with others."""
    own = next((path for path in kept.paths("stores") if path.exists()), None)
    return own or kept.month_folder("stores")


def old_ones(found: Sequence[Kept], moment: int) -> list[str]:
    """A sentence for each broker whose partial report is much older than a moment (ms)."""
    return [
        f"{kept.broker}: what was kept of it is {(moment - kept.as_of) // 1000} s old"
        for kept in found
        if moment - kept.as_of > _OLD_MS and not kept.number
    ]


def _try_all(found: Sequence[Kept], *, only_figures: bool) -> list[PartialReport | UnreadableStore]:
    return [_try(kept, only_figures=only_figures) for kept in found]


def _try(kept: Kept, *, only_figures: bool) -> PartialReport | UnreadableStore:
    """Read a partial report, or give the reason why that fails."""
    try:
        return read_share(kept, only_figures=only_figures)
    except UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return UnreadableStore(StoreRef(kept.broker, str(kept.path("stores"))), reason)


def read_share(kept: Kept, *, only_figures: bool = False) -> PartialReport:
    """Read the kept data of a store; ``only_figures``: without minutes and tags.

    Raises NoArrowError, OSError, and ValueError or KeyError for other content.
    """
    (store,) = rows_of(kept, "stores")
    groups = rows_of(kept, "groups")
    queues: dict[Place, list[QueueLag]] = defaultdict(list)
    for row in rows_of(kept, "queues"):
        queues[row["group"], row["topic"]].append(_queue(row))
    tags: dict[Place, Tags] = defaultdict(dict)
    for row in [] if only_figures else rows_of(kept, "tags"):
        tags[row["group"], row["topic"]][row["tag"]] = row["messages"], row["bytes"]
    return PartialReport(
        StoreRef(kept.broker, store["path"]),
        (store["log_min_offset"], store["log_max_offset"]),
        frozenset(store["marks"]),
        [
            GroupLag(group, topic, queues[group, topic], row["retry"], row["dlq"], members=0)
            for row in groups
            for group, topic in [(row["group"], row["topic"])]
        ],
        {} if only_figures else dict(_minutes(kept)),
        dict(tags),
        [ScannedDelays(row["level"], row["messages"]) for row in rows_of(kept, "agenda")],
        [Orphan(row["group"], row["topic"]) for row in rows_of(kept, "orphans")],
        [
            StoreWarning(row["warning"], row["group"], row["topic"])
            for row in rows_of(kept, "warnings")
        ],
        store["is_damaged"],
        {row["group"]: (row["retry"], row["dlq"]) for row in groups},
    )


def _queue(row: Row) -> QueueLag:
    return QueueLag(
        row["queue_id"],
        QueuePosition(row["min_offset"], row["committed_offset"], row["max_offset"]),
        row["lag_bytes"],
        row["oldest_unread_timestamp"],
        row["rate_in"],
        row["rate_out"],
        Health(row["status"]),
        row["risk_timestamp"],
    )


def _minutes(kept: Kept) -> Iterator[tuple[Place, Amounts]]:
    """Amounts by group and topic; there may be millions of rows, those of one place in sequence."""
    table = table_of(kept, "minutes")
    if table is None:
        return
    times = table.column("minute_timestamp").fill_null(UNKNOWN_MINUTE * MINUTE_MS).to_numpy()
    messages, sizes = (table.column(name).to_numpy() for name in ("messages", "bytes"))
    groups, topics = (
        table.column(name).combine_chunks().dictionary_encode() for name in ("group", "topic")
    )
    codes = [column.indices.to_numpy() for column in (groups, topics)]
    changes = (np.diff(codes[0]) != 0) | (np.diff(codes[1]) != 0)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(times)]
    for low, high in pairwise(bounds):
        here = slice(low, high)
        place = (groups[low].as_py(), topics[low].as_py())
        yield place, added_up([Amounts(times[here] // MINUTE_MS, messages[here], sizes[here])])


def _chosen(share: PartialReport, choice: Choice) -> PartialReport:
    group_lags = [one for one in share.group_lags if choice.takes(one.group, one.topic)]
    orphans = [one for one in share.orphans if choice.names(one.group, one.topic)]
    topics = {one.topic for one in group_lags}
    gone = about_orphans(orphans)
    warnings = []
    is_damaged = any(
        queue.unread.first_unread is not None and queue.lag_bytes is None
        for one in group_lags
        for queue in one.queues
    )
    for one in share.warnings:
        _, group, topic = one
        if topic is None or (group is not None and choice.takes(group, topic)):
            warnings.append(one)
            is_damaged = is_damaged or one.text.startswith(f"{share.ref.broker}: {INCOMPLETE}")
        elif group is None and topic in gone:
            warnings.append(one._replace(text=f"{share.ref.broker}: {gone[topic]}"))
        elif group is None and topic in topics:
            warnings.append(one)
            is_damaged = True  # a queue of the topic
    return share._replace(
        group_lags=group_lags,
        orphans=orphans,
        warnings=warnings,
        is_damaged=share.is_damaged and is_damaged,
    )
