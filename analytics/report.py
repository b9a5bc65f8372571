"""The report: what surveys say and works have counted, as rows that can be printed or kept.

Pure: the same input gives the same report, whatever engine has counted. Rows are dictionaries
whose keys are the fields of the command line; unknown is None and enters no sum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .health import worst
from .kernels.partials import MINUTE_MS, UNKNOWN_MINUTE, Cells, Partials
from .plan import first_numbers
from .totals import QueueLag, Totals, add_up, sum_of_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .looking import Standing
    from .survey import Survey

Row = dict[str, Any]

AGES_MS: Final = tuple(
    minutes * MINUTE_MS for minutes in (0, 1, 5, 15, 60, 360, 1_440, 4_320, 10_080)
)
"""Where the classes of ages begin: now, 1, 5, 15 min, 1, 6 h, 1, 3, 7 days."""
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True)
class Report:
    """How late everybody is. Times are epoch ms, rates messages a second."""

    as_of: int
    stores: list[Row]
    """broker, path, log_min_offset, log_max_offset"""
    totals: Row
    groups: list[Row]
    """A row for each group and topic, over all stores: the fields of ``lag show``."""
    queues: list[Row]
    """A row for each group, topic, broker and queue."""
    tags: list[Row]
    """group, topic, tag (null: none), messages, bytes"""
    minutes: list[Row]
    """group, topic, minute_timestamp (null: store time unreadable), messages, bytes"""
    hours: list[Row]
    """The same with hour_timestamp."""
    ages: list[Row]
    """group, topic, from_age_ms, to_age_ms (null: any older), messages, bytes; by whole minutes"""
    agenda: list[Row]
    """broker, level, messages: delayed messages that wait"""
    orphans: list[Row]
    """broker, group, topic: progress in topics that do not exist"""
    warnings: list[str]


def make_report(
    surveys: Sequence[Survey], counted: Partials, as_of: int, warnings: Iterable[str] = ()
) -> Report:
    """Put together what was found out."""
    backlogs = _Backlogs(surveys, counted)
    groups: list[Row] = []
    queues: list[Row] = []
    tags: list[Row] = []
    minutes: list[Row] = []
    hours: list[Row] = []
    ages: list[Row] = []
    for (group, topic), standings in _by_group(surveys).items():
        groups.append(_group_row(group, topic, standings, as_of))
        queues += _queue_rows(group, topic, standings, as_of)
        place = {"group": group, "topic": topic}
        by_minute = backlogs.of(group, topic, counted.minutes)
        minutes += _keyed(place, "minute_timestamp", by_minute, MINUTE_MS)
        hours += _keyed(place, "hour_timestamp", _merged(by_minute, 60), _HOUR_MS)
        ages += _ages(place, by_minute, as_of)
        tags += _tags(place, backlogs.of(group, topic, counted.tags), counted.texts)
    told = [*warnings, *_warnings(surveys, counted)]
    return Report(
        as_of,
        [
            {
                "broker": survey.ref.broker,
                "path": survey.ref.path,
                "log_min_offset": survey.log[0],
                "log_max_offset": survey.log[1],
            }
            for survey in surveys
        ],
        _totals(groups, surveys, as_of, len(told)),
        groups,
        queues,
        tags,
        minutes,
        hours,
        ages,
        [
            {"broker": survey.ref.broker, "level": one.level, "messages": one.messages}
            for survey in surveys
            for one in survey.agenda
        ],
        [
            {"broker": survey.ref.broker, "group": one.group, "topic": one.topic}
            for survey in surveys
            for one in survey.orphans
        ],
        told,
    )


Backlog = list[tuple[int, int, int]]
"""(key, messages, bytes), sorted by key."""


class _Backlogs:
    """What each group has not read, by summing up the segments behind where it is."""

    def __init__(self, surveys: Sequence[Survey], counted: Partials) -> None:
        self._segments: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for survey, base in zip(surveys, first_numbers(surveys), strict=True):
            plan = {(queue.topic, queue.queue_id): queue for queue in survey.queues}
            for standing in survey.look.standings:
                for queue in standing.queues:
                    first = queue.unread.first_unread
                    if first is not None:
                        known = plan[standing.topic, queue.queue_id]
                        segment = known.cuts.index(first)
                        place = (standing.group, standing.topic)
                        self._segments[place].append((base + known.number, segment))
        self._starts: dict[int, NDArray[np.int64]] = {}

    def of(self, group: str, topic: str, cells: Cells) -> Backlog:
        """What a group has not read of a topic, by the key of the cells."""
        found: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        for queue, segment in self._segments.get((group, topic), ()):
            low, high = np.searchsorted(cells.queue, (queue, queue + 1))
            low += np.searchsorted(cells.segment[low:high], segment)
            here = slice(int(low), int(high))
            found.append((cells.key[here], cells.messages[here], cells.bytes[here]))
        if not found:
            return []
        keys = np.concatenate([part[0] for part in found])
        names, codes = np.unique(keys, return_inverse=True)
        messages, sizes = (
            np.zeros(len(names), np.int64),
            np.zeros(len(names), np.int64),
        )
        np.add.at(messages, codes, np.concatenate([part[1] for part in found]))
        np.add.at(sizes, codes, np.concatenate([part[2] for part in found]))
        return list(zip(names.tolist(), messages.tolist(), sizes.tolist(), strict=True))


def _by_group(
    surveys: Sequence[Survey],
) -> dict[tuple[str, str], list[tuple[str, Standing]]]:
    found: dict[tuple[str, str], list[tuple[str, Standing]]] = defaultdict(list)
    for survey in surveys:
        for standing in survey.look.standings:
            found[standing.group, standing.topic].append((survey.ref.broker, standing))
    return dict(sorted(found.items()))


def _group_row(
    group: str, topic: str, standings: Sequence[tuple[str, Standing]], as_of: int
) -> Row:
    # Queues of several brokers have the same ids: number them through, and name the worst after.
    together = [queue for _, standing in standings for queue in standing.queues]
    total = add_up([queue._replace(queue_id=at) for at, queue in enumerate(together)])
    at = total.worst_queue_id
    return {
        "group": group,
        "topic": topic,
        **_figures(total, as_of),
        "status": str(total.status),
        "retry": sum_of_all(standing.retry for _, standing in standings),
        "dlq": sum(standing.dlq for _, standing in standings),
        "worst_queue_id": None if at is None else together[at].queue_id,
        "skew": total.skew,
        "lost": total.lost,
        "risk_timestamp": total.risk_timestamp,
        "unknown_queues": total.unknown_queues,
    }


def _figures(total: Totals, as_of: int) -> Row:
    oldest = total.oldest_unread_timestamp
    return {
        "queues": total.queues,
        "lag": total.lag,
        "lag_bytes": total.lag_bytes,
        "oldest_unread_timestamp": oldest,
        "oldest_unread_age_ms": _age(oldest, as_of),
        "rate_in": total.rate_in,
        "rate_out": total.rate_out,
        "drain_ms": total.drain_ms,
    }


def _queue_rows(
    group: str, topic: str, standings: Sequence[tuple[str, Standing]], as_of: int
) -> Iterator[Row]:
    for broker, standing in standings:
        for queue in standing.queues:
            yield {
                "group": group,
                "topic": topic,
                "broker": broker,
                "queue_id": queue.queue_id,
                "min_offset": queue.unread.min_offset,
                "committed_offset": queue.unread.committed_offset,
                "max_offset": queue.unread.max_offset,
                **_queue_figures(queue, as_of),
            }


def _queue_figures(queue: QueueLag, as_of: int) -> Row:
    oldest = queue.oldest_unread_timestamp
    return {
        "lag": queue.unread.lag,
        "lag_bytes": queue.lag_bytes,
        "oldest_unread_timestamp": oldest,
        "oldest_unread_age_ms": _age(oldest, as_of),
        "rate_in": _rounded(queue.rate_in),
        "rate_out": _rounded(queue.rate_out),
        "drain_ms": queue.drain_ms,
        "status": str(queue.status),
        "lost": queue.unread.lost,
        "risk_timestamp": queue.risk_timestamp,
    }


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)


def _age(timestamp: int | None, as_of: int) -> int | None:
    return None if timestamp is None else max(0, as_of - timestamp)


def _keyed(place: Row, name: str, backlog: Backlog, unit_ms: int) -> Iterator[Row]:
    for key, messages, size in backlog:
        moment = None if key == UNKNOWN_MINUTE else key * unit_ms
        yield {**place, name: moment, "messages": messages, "bytes": size}


def _merged(backlog: Backlog, by: int) -> Backlog:
    total: dict[int, tuple[int, int]] = {}
    for key, messages, size in backlog:
        name = key if key == UNKNOWN_MINUTE else key // by
        before = total.get(name, (0, 0))
        total[name] = (before[0] + messages, before[1] + size)
    return [(key, *sums) for key, sums in total.items()]


def _ages(place: Row, by_minute: Backlog, as_of: int) -> Iterator[Row]:
    """By classes; a message is as old as its minute's begin, but never younger than nothing."""
    total: dict[int, tuple[int, int]] = {}
    for minute, messages, size in by_minute:
        if minute == UNKNOWN_MINUTE:
            continue
        age = max(0, as_of - minute * MINUTE_MS)
        number = bisect_right(AGES_MS, age) - 1
        before = total.get(number, (0, 0))
        total[number] = (before[0] + messages, before[1] + size)
    for number, (messages, size) in sorted(total.items()):
        last = number + 1 == len(AGES_MS)
        yield {
            **place,
            "from_age_ms": AGES_MS[number],
            "to_age_ms": None if last else AGES_MS[number + 1],
            "messages": messages,
            "bytes": size,
        }


def _tags(place: Row, backlog: Backlog, texts: Mapping[int, str | None]) -> Iterator[Row]:
    """The largest first. Numbers that are no hash of a tag are told together."""
    total: dict[str | None, tuple[int, int]] = {}
    for key, messages, size in backlog:
        text = texts.get(key)
        before = total.get(text, (0, 0))
        total[text] = (before[0] + messages, before[1] + size)
    for text, (messages, size) in sorted(total.items(), key=lambda item: (-item[1][0], str(item))):
        yield {**place, "tag": text, "messages": messages, "bytes": size}


def _totals(groups: Sequence[Row], surveys: Sequence[Survey], as_of: int, warnings: int) -> Row:
    def known(name: str) -> list[Any]:
        return [row[name] for row in groups if row[name] is not None]

    oldest = min(known("oldest_unread_timestamp"), default=None)
    depths = {
        (survey.ref.path, standing.group): (standing.retry, standing.dlq)
        for survey in surveys
        for standing in survey.look.standings
    }
    statuses = {
        queue.status
        for survey in surveys
        for standing in survey.look.standings
        for queue in standing.queues
    }
    return {
        "stores": len(surveys),
        "groups": len({row["group"] for row in groups}),
        "topics": len({row["topic"] for row in groups}),
        "queues": sum(row["queues"] for row in groups),
        "lag": sum(known("lag")) if known("lag") else None,
        "lag_bytes": sum(known("lag_bytes")) if known("lag_bytes") else None,
        "oldest_unread_timestamp": oldest,
        "oldest_unread_age_ms": _age(oldest, as_of),
        "lost": sum(known("lost")) if known("lost") else None,
        "retry": sum_of_all(retry for retry, _ in depths.values()),
        "dlq": sum(dlq for _, dlq in depths.values()),
        "status": str(worst(statuses)),
        "unknown_queues": sum(row["unknown_queues"] for row in groups),
        "warnings": warnings,
    }


def _warnings(surveys: Sequence[Survey], counted: Partials) -> Iterator[str]:
    for survey in surveys:
        for sentence in survey.warnings:
            yield f"{survey.ref.broker}: {sentence}"
        lost: dict[str, list[str]] = defaultdict(list)
        for orphan in survey.orphans:
            lost[orphan.topic].append(orphan.group)
        for topic, groups in lost.items():
            who = "group" if len(groups) == 1 else "groups"
            yield (
                f"{survey.ref.broker}: {who} {', '.join(groups)}: progress in {topic}, "
                "which does not exist"
            )
    if counted.unreadable:
        yield (
            f"{counted.unreadable} messages have no unit in their queue: they are counted without "
            "bytes, time and tag"
        )
    if counted.disorder:
        yield (
            "store times go back in the log, or some could not be read: every record was looked at"
        )
