"""What ``message stats --by`` counts by: the names, and the value of a message for each."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.format.errors import BodyError
from storage.format.host import unpack_host

if TYPE_CHECKING:
    from datetime import tzinfo

    from storage.format.message import MessageExt

ValueOf = Callable[["MessageExt"], Any]

KEY: Final = "key"
"""The only property with several values per message."""
_HOUR_MS: Final = 3_600_000
_QUARTER_MS: Final = 900_000
SPANS: Final = {"minute": 60_000, "hour": _HOUR_MS, "day": 24 * _HOUR_MS}
_JSON: Final = "json."
_PROPERTY: Final = "property."
_OTHERS: Final = {
    "keys": KEY,
    "tags": "tag",
    **dict.fromkeys(("sender", "senders", "producer", "client", "born_host"), "host"),
}
"""Names of other tools."""


@lru_cache(4096)
def _host_of(address: bytes) -> str:
    return unpack_host(address).rpartition(":")[0]


VALUES: Final[Mapping[str, ValueOf]] = {
    "topic": attrgetter("topic"),
    "queue": lambda message: f"{message.topic}:{message.queue_id}",
    "tag": attrgetter("tags"),
    "host": lambda message: _host_of(message.born_host_bytes),
    "attempts": lambda message: str(message.reconsume_times),
}
BY: Final = (
    "topic, queue, tag, key, host, attempts, minute, hour, day, json.PATH or property.NAME; "
    "'hour,WHAT' combines a time span with another"
)


class Pair(NamedTuple):
    """A time span with another property, as ``hour,json.country``."""

    span: str
    other: str


def pair_of(by: str) -> Pair | None:
    """The parts of a name with a comma outside of brackets; None for one name.

    ValueError for two that are not a time span and another.
    """
    for span, other in (by.partition(",")[::2], by.rpartition(",")[::-2]):
        if other and span.strip() in SPANS:
            return Pair(span.strip(), other.strip())
    head = by.partition(",")[0].strip()
    if "," in by and (head in VALUES or head == KEY):
        raise ValueError(f"{by!r} has no time span (minute, hour, day), such as 'hour,tag'")
    return None


def check(by: str) -> None:
    """ValueError for a name that is none."""
    pair = pair_of(by)
    if pair is not None:
        if pair.other in (KEY, *SPANS):
            raise ValueError(f"{by!r}: {pair.other} cannot be combined with a time span")
        check(pair.other)
    elif by.startswith(_JSON):
        _at_path(by.removeprefix(_JSON))
    elif by not in (KEY, *VALUES, *SPANS) and by.removeprefix(_PROPERTY) in ("", by):
        from rmqctl.parse.near_names import did_you_mean

        hint = did_you_mean(by, (KEY, *VALUES, *SPANS), _OTHERS)
        raise ValueError(f"{by!r} is not one of {BY}{hint or _as_field(by)}")


def _as_field(by: str) -> str:
    by = by.removeprefix("body.").removeprefix("$.")
    return f"; the field of a JSON body is json.{by}" if by.replace(".", "").isidentifier() else ""


def value_of(by: str, zone: "tzinfo | None") -> ValueOf:
    """The value of a message for a name other than KEY; times are in ``zone``.

    A message without the value has None, a field that is not a text is JSON.
    """
    pair = pair_of(by)
    if pair is not None:
        start, other = start_of(pair.span, zone), value_of(pair.other, zone)
        return lambda message: (start(message.store_timestamp), other(message))
    if by in SPANS:
        begin = start_of(by, zone)
        return lambda message: begin(message.store_timestamp)
    if by.startswith(_JSON):
        return _at_path(by.removeprefix(_JSON))
    if by.startswith(_PROPERTY):
        name = by.removeprefix(_PROPERTY)
        return lambda message: message.get_property(name)
    return VALUES[by]


def _at_path(path: str) -> ValueOf:
    """The text of a field of JSON bodies; None where there is none. ValueError for no path."""
    from rmqctl.parse.json_path import parse_path
    from rmqctl.parse.json_texts import parse_json

    read, text_of = parse_path(path)

    def value(message: "MessageExt") -> str | None:
        try:
            found = next(iter(read(parse_json(message.body))), None)
        except (BodyError, ValueError, RecursionError):
            return None
        return None if found is None else text_of(found)

    return value


def start_of(name: str, zone: "tzinfo | None") -> Callable[[int], int]:
    """A function that returns the start of the span of a time, in a zone."""
    from storage.parse.times import near_datetime

    if name == "day":
        return _start_of_day(zone)
    span = SPANS[name]
    known: dict[int, int] = {}

    def start(time: int) -> int:
        if name == "minute":
            return time - time % span
        quarter = time // _QUARTER_MS  # no zone changes its offset within a quarter of an hour
        offset = known.get(quarter)
        if offset is None:
            shift = near_datetime(time, zone).utcoffset()
            offset = known[quarter] = int(shift.total_seconds() * 1000) if shift else 0
        return time - (time + offset) % span

    return start


def length_of(name: str, start: int, zone: "tzinfo | None") -> int:
    """Milliseconds of the span that begins at a time, in a zone: a day may have 23 or 25 hours."""
    if name == "day":
        from storage.parse.times import day_bounds

        begin, end = day_bounds(start, zone)
        if begin == start:
            return end - begin
    return SPANS[name]


def _start_of_day(zone: "tzinfo | None") -> Callable[[int], int]:
    """Days begin at midnight of their own offset, which may be another one than that of a time."""
    from storage.parse.times import day_bounds

    known: dict[int, tuple[int, int]] = {}

    def start(time: int) -> int:
        quarter = time // _QUARTER_MS
        begin, end = known.get(quarter, (0, 0))
        if not begin <= time < end:
            begin, end = known[quarter] = day_bounds(time, zone)
        if begin <= time < end:
            return begin
        return time - time % SPANS["day"]  # a damaged time, outside of all calendars

    return start
