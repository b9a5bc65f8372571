"""Small partial reports, kept as files without any store; and what programs see of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from analytics.engines.local import LocalEngine
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.lag.health import Health
from analytics.lag.lag_snapshot import GroupLag
from analytics.lag.queue_position import QueuePosition
from analytics.lag.selection import Choice
from analytics.lag.totals import QueueLag
from analytics.report.amounts import Amounts
from analytics.report.partial import PartialReport
from analytics.report.scan import StoreWarning
from analytics.report.stores import StoreRef

DAY_MS = 86_400_000
OLD = 1_767_247_200_000
"""2026-01-01 06:00 UTC."""
GROUPS = ("billing", "shipping")


def share(broker: str, lag: int | None, as_of: int, *, full: bool = True) -> PartialReport:
    """A store with two groups in one topic and queue; ``None``: their progress is not known.

    Without ``full`` it has rows in three tables only.
    """
    unread = lag or 0
    oldest = as_of - 60_000 * unread if unread else None
    queue = QueueLag(
        0,
        QueuePosition(0, None if lag is None else 1000 - lag, 1000),
        None if lag is None else 100 * unread,
        oldest,
        None,
        None,
        Health.UNKNOWN if lag is None else Health.OK,
        None,
    )
    places = [(group, "orders") for group in GROUPS]
    some = full and unread > 0
    minute = np.array([(as_of - 60_000 * unread) // 60_000], np.int64)
    amounts = Amounts(minute, np.array([unread], np.int64), np.array([100 * unread], np.int64))
    return PartialReport(
        StoreRef(broker, f"/data/{broker}/store"),
        (0, 100_000),
        frozenset({f"0 {broker}"}),
        [GroupLag(group, topic, [queue], 0, 0, members=0) for group, topic in places],
        dict.fromkeys(places, amounts) if some else {},
        {place: {"paid": (unread, 100 * unread)} for place in places} if some else {},
        [],
        [],
        [StoreWarning(f"{broker}: a warning")] if full else [],
    )


def run(folder: Path, as_of: int, lags: Mapping[str, int | None], *, full: bool = True) -> int:
    """Keep a report of several brokers; gives the number of files."""
    places = [(group, "orders") for group in GROUPS]
    shares = [share(broker, lag, as_of, full=full) for broker, lag in lags.items()]
    return keep(shares, as_of, folder, places, None)


def document(folder: Path, until: int | None = None) -> str:
    """The report that is gathered of a folder, as text."""
    found = find_kept([str(folder)], until)
    made = gathered_report(LocalEngine(), found, Choice(), until)
    assert not made.unreadable, made.unreadable
    return json.dumps(made.report.document())


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """What any program sees of a table that lists the folder once."""
    from pyarrow import dataset

    found: list[dict[str, Any]] = (
        dataset.dataset(str(folder / table), format="parquet").to_table().to_pylist()
    )
    return found


def places(found: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Whose the rows of ``groups`` are, sorted: one that is there twice shows."""
    names = ("as_of", "broker", "store_number", "group", "topic", "lag")
    return sorted(tuple(row[name] for name in names) for row in found)


def files(folder: Path) -> list[str]:
    """All files, by their paths."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
