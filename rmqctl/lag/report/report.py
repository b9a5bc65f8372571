"""Building the report of a call: its stores, the engine, and the selected rows."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from analytics.history.gathering import gathered_report
from analytics.lag.health import Health, worst
from analytics.lag.totals import sum_or_unknown
from analytics.report.lag_report import MadeReport, UnreadableStore, lag_report
from analytics.report.report import ends_after, has_unknown_lag
from analytics.report.stores import StoreRef, find_stores
from broker.validation import check_group, check_topic
from rmqctl import exit_codes
from rmqctl.errors import CliError, NotFound, UsageProblem
from storage.counted import counted

if TYPE_CHECKING:
    from analytics.engines import Engine
    from analytics.history.tables import Kept
    from analytics.lag.selection import Choice
    from analytics.report.amounts import Row
    from analytics.report.report import Report
    from rmqctl.cli.context import Cli

    from .previous import Previous
    from .rows import LagReport


class Asked(NamedTuple):
    """The options of a call."""

    refs: Sequence[StoreRef]
    choice: "Choice"
    as_of: int
    exact: bool = False
    kept: "Sequence[Kept] | None" = None
    """Partial reports of the stores, to be combined instead of reading the stores."""


def stores_of(cli: "Cli") -> list[StoreRef]:
    """The stores that the call names, else the default store."""
    named = cli.settings.get("store")
    if named is None:
        return find_stores([str(cli.store.path)])
    return find_stores(named.value if isinstance(named.value, list) else [named.value])


def check_some_are_there(refs: Sequence[StoreRef], master: str | None) -> None:
    """Check before Spark starts that a folder exists; only a cluster may see other folders.

    Raises the error of opening the first store.
    """
    elsewhere = master is not None and not master.startswith("local")
    if not elsewhere and refs and not any(Path(ref.path).is_dir() for ref in refs):
        from storage.readonly import StoreView

        StoreView.open(refs[0].path).close()


@contextmanager
def engine_of(cli: "Cli", name: str, master: str | None, stores: int) -> "Iterator[Engine]":
    """The engine that counts: ``auto`` is local for one store, Spark for many or with a master."""
    if name == "auto":
        name = "spark" if master is not None or stores > 1 else "local"
    if name == "local":
        if master is not None:
            raise UsageProblem("--master is for Spark; leave it out, or leave out --engine local")
        from analytics.engines.local import LocalEngine

        yield LocalEngine()
        return
    from analytics.engines.spark import SparkEngine
    from analytics.spark.session import LOCAL, SparkSession

    session = SparkSession(master or LOCAL)
    try:
        with session:
            yield SparkEngine(session.context, cli.warn)
    finally:
        if cli.flag("debug"):
            cli.detail(session.output().rstrip())


def made_report(cli: "Cli", engine: "Engine", asked: Asked) -> MadeReport:
    """Build the report. If no store can be read, raises the error of opening it."""
    if asked.kept is not None:
        made = gathered_report(engine, asked.kept, asked.choice, asked.as_of)
        if len(made.unreadable) == len(asked.kept):
            first = made.unreadable[0]
            raise CliError(f"{first.ref.path}: {first.reason}")
        if not made.unreadable:
            _check_known(made.report, asked.choice)
        return made
    with cli.progress("counting", "messages", 1) as bar:
        done = 0

        def tell(counted: int, total: int) -> None:
            nonlocal done
            bar.total = total or 1
            bar.advance(counted - done, counted - done)
            done = counted

        made = lag_report(
            engine,
            asked.refs,
            asked.as_of,
            asked.choice,
            exact=asked.exact,
            progress=tell,
        )
    if len(made.unreadable) == len(asked.refs):
        from storage.readonly import StoreView

        first = made.unreadable[0]
        StoreView.open(first.ref.path).close()  # raises the error that says why
        raise CliError(first.reason, _code_of(first))
    if not made.unreadable:
        _check_known(made.report, asked.choice)
        _check_topics(made.report, asked)
    return made


def _code_of(failed: UnreadableStore) -> int | None:
    if failed.denied:
        return exit_codes.NOT_WRITABLE
    return exit_codes.DAMAGED if failed.damaged else None


def _check_known(report: "Report", choice: "Choice") -> None:
    groups = {row["group"] for row in (*report.groups, *report.orphans)}
    for group in choice.groups or ():
        if group not in groups:
            check_group(group)
            raise NotFound(f"group {group} has no progress in any of these stores")


def _check_topics(report: "Report", asked: Asked) -> None:
    """Accept a topic that no group reads; NotFound for one that does not exist.

    Not checked if the stores are visible to a cluster only.
    """
    read = {row["topic"] for row in (*report.groups, *report.orphans)}
    for topic in asked.choice.topics or ():
        if topic in read or not all(Path(ref.path).is_dir() for ref in asked.refs):
            continue
        if not any(_has_topic(ref, topic) for ref in asked.refs):
            check_topic(topic)
            raise NotFound(f"topic {topic} does not exist in any of these stores")


def _has_topic(ref: StoreRef, topic: str) -> bool:
    from analytics.report.scan import known_topics
    from storage.readonly import StoreView

    with StoreView.open(ref.path) as view:
        return topic in known_topics(view)


def with_warnings(report: "Report", more: Sequence[str]) -> "Report":
    """The report with additional warnings."""
    warnings = [*report.warnings, *more]
    totals = {**report.totals, "warnings": len(warnings)}
    return replace(report, totals=totals, warnings=warnings)


def largest(groups: Sequence["Row"], number: int | None) -> list["Row"]:
    """The groups with the largest lag first; without a number all groups, in order."""
    if number is None:
        return list(groups)
    return sorted(groups, key=lambda row: -(row["lag"] or 0))[:number]


def only(rows: Iterable["Row"], groups: Sequence["Row"]) -> list["Row"]:
    """The rows of these groups and topics."""
    wanted = {(row["group"], row["topic"]) for row in groups}
    return [row for row in rows if (row["group"], row["topic"]) in wanted]


def since(rows: Iterable["Row"], field: str, begin: int | None) -> list["Row"]:
    """The rows of minutes or hours that end after ``begin``; rows of unknown time stay."""
    return [row for row in rows if ends_after(row, field, begin)]


def topic_rows(groups: Sequence["Row"]) -> Iterator["Row"]:
    """Group rows, summed up by topic."""
    topics: dict[str, list[Row]] = defaultdict(list)
    for row in groups:
        topics[row["topic"]].append(row)
    for topic, rows in sorted(topics.items()):
        yield {
            "topic": topic,
            "groups": len(rows),
            "lag": sum_or_unknown(row["lag"] for row in rows),
            "lag_bytes": sum_or_unknown(row["lag_bytes"] for row in rows),
            "oldest_unread_timestamp": min(_known(rows, "oldest_unread_timestamp"), default=None),
            "oldest_unread_age_ms": max(_known(rows, "oldest_unread_age_ms"), default=None),
            "status": str(worst(Health(row["status"]) for row in rows)),
            "unknown_queues": sum(row["unknown_queues"] for row in rows),
        }


def _known(rows: Iterable["Row"], name: str) -> list[Any]:
    return [row[name] for row in rows if row[name] is not None]


def page_of(
    cli: "Cli",
    report: "LagReport",
    previous: "Previous | None",
    history: Sequence[str],
    choice: "Choice",
    *,
    begin: int | None,
    top: int | None,
) -> str:
    """The report as a page, limited by ``begin`` and ``top``, with the days of kept reports in the
    folders ``history``."""
    from analytics.history.daily import days_of
    from analytics.html_report.writer import page

    zone = cli.setting("tz")
    return page(
        report._asdict(),
        zone=None if zone is None else str(zone),
        compared_as_of=None if previous is None else previous.as_of,
        since=begin,
        top=top,
        days=days_of(history, choice, report.as_of)._asdict() if history else None,
    )


def moment_of(kept: "Sequence[Kept] | None") -> int:
    """The default time (ms) of a report: now, or that of the last partial report."""
    if kept is None:
        return time.time_ns() // 1_000_000
    return max(one.as_of for one in kept)


def summary(
    report: "Report", engine: str, elapsed_ms: int, topics: Collection[str] | None = None
) -> str:
    """One sentence about the whole report, limited to ``topics`` (None: all)."""
    totals = report.totals
    stores = counted(totals["stores"], "store")
    if not totals["groups"]:
        where = f"topic {', '.join(topics)} of {stores}" if topics else stores
        return f"no group has any progress in {where}; counted by {engine} in {elapsed_ms} ms"
    lag = "an unknown number of messages"
    if totals["lag"] is not None:
        some_unknown = totals["unknown_queues"] and any(map(has_unknown_lag, report.queues))
        lag = f"{'at least ' if some_unknown else ''}{counted(totals['lag'], 'message')}"
    where = f"{counted(totals['groups'], 'group')} in {stores}"
    return (
        f"{where}: lag of {lag}, status {totals['status']}; counted by {engine} in {elapsed_ms} ms"
    )
