"""Dead letters grouped by a common property."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.retry.failures import reason_text
from rmqctl.errors import UsageProblem
from rmqctl.parse.json_texts import parse_json
from storage.clock import now_ms as clock_ms
from storage.format.errors import BodyError
from storage.format.message import PROPERTY_RETRY_TOPIC
from storage.parse.times import EARLIEST, LATEST, near_datetime

from .rows import DeadLetterGroupRow

if TYPE_CHECKING:
    from storage.format.message import MessageExt

Sorter = Callable[["MessageExt"], Iterable[str | None]]
"""The groups of a message; None is the group of unknown values."""

_VARIABLE: Final = re.compile(
    r"'[^']*'|\"[^\"]*\"|\b[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b|\d+(?:[.:]\d+)*"
)
"""The parts that differ between failures of one kind: quoted texts, ids, numbers."""
_MOST_NAMES: Final = 12


class _Seen(NamedTuple):
    times: int
    first: "MessageExt"
    last: "MessageExt"


BY: Final = ("reason", "tag", "key", "host", "hour", "age", "shape")
_AGES: Final = (
    (60_000, "below 1m"),
    (600_000, "1m to 10m"),
    (3_600_000, "10m to 1h"),
    (86_400_000, "1h to 1d"),
    (604_800_000, "1d to 7d"),
)


def grouped(
    messages: Iterable["MessageExt"],
    by: str,
    zone: tzinfo | None = None,
    now_ms: int | None = None,
) -> Iterator[DeadLetterGroupRow]:
    """One row for each group, the largest first; unknown values are None.

    A message with several keys is in the group of each key. Hours are in ``zone``, ages relative to
    ``now_ms``. Raises UsageProblem for an unknown property.
    """
    sorter = _sorter(by, zone, clock_ms() if now_ms is None else now_ms)
    seen: dict[str | None, _Seen] = {}
    topics: dict[str | None, set[str]] = defaultdict(set)
    total = 0
    for message in messages:
        total += 1
        for value in sorter(message):
            known = seen.get(value)
            if known is None:
                seen[value] = _Seen(1, message, message)
            else:
                first = min(known.first, message, key=_died)
                seen[value] = _Seen(known.times + 1, first, max(known.last, message, key=_died))
            if origin := message.get_property(PROPERTY_RETRY_TOPIC):
                topics[value].add(origin)
    for value, group in sorted(
        seen.items(), key=lambda item: (-item[1].times, item[0] is None, item[0] or "")
    ):
        yield DeadLetterGroupRow(
            value,
            group.times,
            round(group.times / total, 4),
            group.first.store_timestamp,
            group.last.store_timestamp,
            sorted(topics[value]),
            group.last.msg_id,
        )


def in_group(
    by: str, value: str | None, zone: tzinfo | None = None, now_ms: int | None = None
) -> Callable[["MessageExt"], bool]:
    """Whether a message is in the group of a value, as :func:`grouped` puts it there."""
    sorter = _sorter(by, zone, clock_ms() if now_ms is None else now_ms)
    return lambda message: value in sorter(message)


def _died(message: "MessageExt") -> tuple[int, int]:
    return message.store_timestamp, message.commitlog_offset


def _sorter(by: str, zone: tzinfo | None, now_ms: int) -> Sorter:
    match by:
        case "reason":
            return lambda message: (reason_text(message),)
        case "tag":
            return lambda message: (message.tags,)
        case "key":
            return lambda message: message.keys or (None,)
        case "host":
            return lambda message: (message.born_host.rpartition(":")[0],)
        case "hour":
            return lambda message: (_hour(message.store_timestamp, zone),)
        case "age":
            return lambda message: (_age(now_ms - message.store_timestamp),)
        case "shape":
            return lambda message: (shape_of(message),)
    raise UsageProblem(f"--by: {by!r} is not one of {', '.join(BY)}")


def _hour(timestamp: int, zone: tzinfo | None) -> str:
    if not EARLIEST <= timestamp <= LATEST:
        return str(timestamp)
    moment = near_datetime(timestamp, zone)
    return moment.replace(minute=0, second=0, microsecond=0).isoformat(timespec="minutes")


def _age(age_ms: int) -> str:
    return next((name for below, name in _AGES if age_ms < below), "over 7d")


def shape_of(message: "MessageExt") -> str:
    """The reason without the parts that differ between cases; without a reason, the body's form."""
    reason = reason_text(message)
    if reason is not None:
        return _VARIABLE.sub("*", reason)
    try:
        body = message.body
    except BodyError:
        return "body: damaged"
    if not body:
        return "body: empty"
    try:
        value = parse_json(body)
    except ValueError:
        return "body: text" if _is_text(body) else "body: binary"
    return f"body: JSON {_form(value)}"


def _is_text(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _form(value: Any) -> str:
    """The member names of an object, or the type of any other value."""
    if isinstance(value, dict):
        names = sorted(value)
        more = ", ..." if len(names) > _MOST_NAMES else ""
        return "{" + ", ".join(names[:_MOST_NAMES]) + more + "}"
    kinds = {list: "array", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "number")
