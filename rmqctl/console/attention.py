"""What needs attention, worst first: rows made of the rows of several commands. Pure."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Annotated, Any, Final, NamedTuple

from rmqctl.admin.lag.backlog_rows import RiskRow
from rmqctl.admin.lag.rows import LagRow
from rmqctl.console.health import amount_at_risk
from rmqctl.console.looks.new_letters import NEW_MS
from rmqctl.output.fields import Fit, Rank, Wide
from storage.parse.durations import format_duration


class AttentionRow(NamedTuple):
    """Something that needs attention."""

    state: Annotated[
        str, "STALL, STOP, REWIND, RISK, DLQ, LATE, DISK, WARN, LOST or UNKNOWN", Rank.KEY
    ]
    what: Annotated[str, "what it is, in words", Rank.KEY, Fit.WHOLE]
    group: Annotated[str | None, "the consumer group"]
    topic: Annotated[str | None, "the topic"]
    age_ms: Annotated[
        int | None, "age of the oldest unread or late message, or of the newest dead letter"
    ]
    lag: Annotated[int | None, "unread messages of a group"]
    rate_in: Annotated[float | None, "messages stored per second"]
    rate_out: Annotated[float | None, "messages read per second"]
    drain_ms: Annotated[int | None, "time until all is read; null if unknown or never"]
    command: Annotated[str, Wide("the command that shows it")]
    level: Annotated[int | None, Wide("the delay level whose messages are late")] = None

    @property
    def blank(self) -> bool:
        """Whether null means that there is no such value, not that it is unknown."""
        return self.state in ("RISK", "DLQ", "LATE", "DISK", "LOST")

    @property
    def unknown(self) -> tuple[str, ...]:
        """Fields of a blank row whose null is unknown all the same."""
        return ("age_ms",) if self.state == "DLQ" else ()


_ORDER: Final = (
    *("STALL", "STOP", "REWIND", "RISK", "DLQ", "LATE", "DISK", "WARN", "LOST", "UNKNOWN"),
)
_PLACES: Final = {state: place for place, state in enumerate(_ORDER)}
STATUS_WORDS: Final = {
    "OK": "it keeps up, or catches up",
    "STALL": "it has members and reads nothing",
    "STOP": "it reads nothing and has no member",
    "REWIND": "its progress went back",
    "WARN": "it reads slower than messages come",
    "UNKNOWN": "it is unknown whether it reads",
}
_NEVER: Final = float("inf")


def status_words(status: str, unknown_queues: int = 0) -> str:
    """What a status means, in words."""
    if unknown_queues and status in ("WARN", "UNKNOWN"):
        return f"the lag of {unknown_queues} queue{'' if unknown_queues == 1 else 's'} is unknown"
    return STATUS_WORDS[status]


def of_lag(rows: Iterable[LagRow]) -> Iterator[AttentionRow]:
    """Groups whose status is not OK."""
    for row in rows:
        if row.status == "OK":
            continue
        what = status_words(row.status, row.unknown_queues)
        yield AttentionRow(
            row.status,
            what,
            row.group,
            row.topic,
            row.oldest_unread_age_ms,
            row.lag,
            row.rate_in,
            row.rate_out,
            row.drain_ms,
            _command("lag", "show", f"--topic={row.topic}", "--", row.group),
        )


def of_risks(rows: Iterable[RiskRow]) -> Iterator[AttentionRow]:
    """Groups that lose, or have lost, unread messages."""
    for row in rows:
        command = _command("lag", "risk", f"--topic={row.topic}", "--", row.group)
        if row.at_risk:
            when = "now" if not row.risk_in_ms else f"in {format_duration(row.risk_in_ms)}"
            what = f"{amount_at_risk(row)} are deleted unread {when}"
            yield _row("RISK", what, row.group, row.topic, command)
        elif row.lost:
            what = f"{row.lost:,} were deleted unread"
            yield _row("LOST", what, row.group, row.topic, command)


def of_dead_letters(
    rows: Iterable[Any], now_ms: int, new: Mapping[str, int | None] | None
) -> Iterator[AttentionRow]:
    """Groups with new dead letters that were neither sent again nor acknowledged, or with some of
    which it is unknown when they came.

    ``new`` has the number of new ones of each group that may have some; None: it is not known yet.
    """
    for row in rows:
        age = None if row.newest_timestamp is None else max(0, now_ms - row.newest_timestamp)
        may_be_new = new is None or row.group in new if age is None else age < NEW_MS
        if row.unhandled and may_be_new:
            command = _command("dlq", "list", "--where", "unhandled > 0")
            count = None if new is None else new.get(row.group)
            what = f"+{'?' if count is None else f'{count:,}'} in {format_duration(NEW_MS)}"
            what += f", {row.unhandled:,} unhandled"
            yield _row("DLQ", what, row.group, None, command)._replace(age_ms=age)


def of_agenda(rows: Iterable[Any], now_ms: int) -> Iterator[AttentionRow]:
    """Delay levels whose messages are late, or are never delivered."""
    for row in rows:
        if row.state == "OK":
            continue
        command = _command("retry", "agenda", "--where", "state != OK")
        late = row.next_timestamp is not None and row.next_timestamp <= now_ms
        age = now_ms - row.next_timestamp if late else None
        known = row.messages is not None
        what = f"{row.overdue:,} of {row.messages:,} overdue" if known else "unknown how many wait"
        what += f", level {row.level} {row.state}"
        found = _row("LATE", what, row.group, row.topic, command)
        yield found._replace(age_ms=age, level=row.level)


def of_disk(rows: Iterable[Any]) -> Iterator[AttentionRow]:
    """A disk that is so full that files are deleted at any hour."""
    for row in rows:
        if row.used_percent > row.any_hour_percent:
            forced = row.forced_percent is not None and row.used_percent > row.forced_percent
            what = f"{row.used_percent:.0f} % full: " + (
                "files of any age are deleted" if forced else "expired files are deleted at once"
            )
            yield _row("DISK", what, None, None, _command("store", "du"))


Placed = tuple[tuple[int, float, float], AttentionRow]
"""A row, after what decides about its place."""


def placed(rows: Iterable[AttentionRow]) -> list[Placed]:
    """Worst first; of one state the largest lag, then the oldest."""
    found = [((_PLACES[row.state], -_size(row.lag), -_size(row.age_ms)), row) for row in rows]
    found.sort(key=itemgetter(0))
    return found


def together(*parts: list[Placed]) -> list[AttentionRow]:
    """The rows of all parts in their order. Most are in order, so that takes few steps."""
    found = [each for part in parts for each in part]
    found.sort(key=itemgetter(0))
    return [row for _, row in found]


def ordered(rows: Iterable[AttentionRow]) -> list[AttentionRow]:
    """Worst first; of one state the largest lag, then the oldest."""
    return together(placed(rows))


def _size(value: int | None) -> float:
    """Unknown comes first."""
    return _NEVER if value is None else value


def _row(state: str, what: str, group: str | None, topic: str | None, command: str) -> AttentionRow:
    return AttentionRow(state, what, group, topic, None, None, None, None, None, command)


@lru_cache(50_000)  # most of a look are those of the look before
def _command(*words: str) -> str:
    if words[-2:-1] == ("--",) and not words[-1].startswith("-"):
        words = (*words[:-2], words[-1])
    return shlex.join(("rmqctl", *words))
