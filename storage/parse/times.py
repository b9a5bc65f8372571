"""Instants: parsing and formatting.

All are integer milliseconds since 1970-01-01 UTC. A time without a zone is read in the zone of the
call, by default the local one. Every option and file with a time is parsed by :func:`read_time`;
its forms are those of the table in :mod:`storage.parse.time_forms`.

A time before 1990 or after 2200 is refused, and the error shows how it was read: it is a number in
another unit or a typing error, and would silently mean the start or the end of a queue.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from .durations import parse_duration, parse_span

if TYPE_CHECKING:
    from .calendar_times import CalendarTime
    from .local_times import Doubt

# Text, compiled on first use: most commands use none.
_COMPACT: Final = r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d))?"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_S: Final = 631_152_000
"""1990-01-01 UTC."""
_LATEST_S: Final = 7_289_654_400
"""2201-01-01 UTC, the first time that is refused."""
_UNITS: Final = (
    ("seconds", 1),
    ("milliseconds", 1000),
    ("microseconds", 1_000_000),
    ("nanoseconds", 1_000_000_000),
)
"""Units of an epoch, with their number per second. A number is in the span in at most one unit."""
_MOST_DIGITS: Final = 40
_ALL_FORMS: Final = "'rmqctl explain time' lists all forms"
_NOW: Final = frozenset({"now", "currenttimestamp", "currenttimemillis"})
"""Now, and mqadmin's words for it, in lower case."""

EARLIEST: Final = -62_135_424_000_000
"""The third day of the year 1, in ms: Python cannot express earlier days in every zone."""
LATEST: Final = 253_402_041_600_000
"""The same before the end of the year 9999."""


class Instant(NamedTuple):
    """A time as it was read."""

    timestamp: int
    """Milliseconds since 1970."""
    zone: tzinfo | None = None
    """The zone in which it was read; None is the local one."""
    doubt: "Doubt | None" = None
    """Set if the wall clock shows this time twice, or never."""

    def understood(self) -> str:
        """The instant for a sentence, with the zone: ``2026-01-31T10:00:00+01:00
        (Europe/Berlin)``."""
        from .local_times import iso, zone_name

        if not self.timestamp:
            return "before every message"
        try:
            moment = to_datetime(self.timestamp, self.zone)
        except (OverflowError, ValueError):
            return str(self.timestamp)
        return f"{iso(moment)} ({zone_name(self.zone)})"


class DoubtfulTimeError(ValueError):
    """A local time that occurs twice or never."""


def parse_time(text: str, now_ms: int, zone: tzinfo | None = None) -> int:
    """Milliseconds of an instant, as :func:`read_time`; DoubtfulTimeError for one in doubt."""
    instant = read_time(text, now_ms, zone)
    if instant.doubt is not None:
        raise DoubtfulTimeError(f"{instant.doubt.problem}; {instant.doubt.remedy}")
    return instant.timestamp


def read_time(text: str, now_ms: int, zone: tzinfo | None = None) -> Instant:
    """The instant of a text; relative ones count from ``now_ms``.

    ``zone`` is the zone of a time without one; None is the local zone. ValueError for malformed
    text, and for a time before 1990 or after 2200 other than 0.
    """
    instant = _read(text, now_ms, zone)
    if instant is None:
        raise ValueError(_no_time(text, now_ms, zone))
    return instant


def _read(text: str, now_ms: int, zone: tzinfo | None) -> Instant | None:
    """The instant of a text; None if it has the form of no time, ValueError if it has one."""
    stripped = text.strip()
    if is_now(stripped):
        return Instant(now_ms, zone)
    digits = stripped.removeprefix("@")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
        return _number(text, digits, now_ms, zone, epoch=stripped != digits)
    instant = _moment(text, stripped, now_ms, zone)
    if instant and instant.timestamp and not _is_plausible(instant.timestamp):
        raise ValueError(
            f"{text!r} would be {_year_or_time(instant.timestamp)}: a time must lie between 1990 "
            "and 2200 (0 is before every message)"
        )
    return instant


def is_now(text: str) -> bool:
    """Whether a text is one of the words for now."""
    return text.strip().lower() in _NOW


def parse_epoch(number: int) -> int:
    """Milliseconds of a number in any unit; ValueError if it is a time in none."""
    return parse_time(str(number), 0)


def check_timestamp(name: str, timestamp: int) -> None:
    """Raise ValueError for a number of ms that is neither 0 nor a time from 1990 to 2200: it is in
    another unit, and would silently mean the start or the end of a queue."""
    if timestamp and not _is_plausible(timestamp):
        raise ValueError(
            f"{name} is {timestamp} ms, which would be {_year_or_time(timestamp)}: a time must lie "
            "between 1990 and 2200 (0 is before every message)"
        )


def check_order(first: int | None, last: int | None, names: tuple[str, str]) -> None:
    """Raise ValueError if a time range ends before it begins; None is an open end."""
    if first is not None and last is not None and first > last:
        raise ValueError(
            f"{names[0]} is {format_time(first, UTC, iso=True)} and {names[1]} is "
            f"{format_time(last, UTC, iso=True)}: the range ends before it begins"
        )


def _number(text: str, digits: str, now_ms: int, zone: tzinfo | None, *, epoch: bool) -> Instant:
    """The instant of digits alone; with ``epoch`` they are no date such as 20260131."""
    number = int(digits)
    if not number:
        return Instant(0, zone)
    for _, in_second in _UNITS:
        if _EARLIEST_S * in_second <= number < _LATEST_S * in_second:
            return Instant(number * 1000 // in_second, zone)
    compact = re.fullmatch(_COMPACT, digits, re.ASCII)
    if compact and not epoch:
        day, clock = "-".join(compact.groups()[:3]), ":".join(compact.groups("00")[3:])
        try:
            instant = _calendar(day if compact[4] is None else f"{day} {clock}", now_ms, zone)
        except (ValueError, OverflowError):
            instant = None
        if instant and _is_plausible(instant.timestamp):
            return instant
    hour = re.fullmatch(r"([01]\d|2[0-3])([0-5]\d)", digits, re.ASCII)
    hint = f"; for a time of day, write {hour[1]}:{hour[2]}" if hour else ""
    raise ValueError(
        f"{text!r} would be {_readings(number)}: a time must lie between 1990 and 2200, in "
        f"seconds, milliseconds, microseconds or nanoseconds (0 is before every message){hint}"
    )


def _readings(number: int) -> str:
    """The times of a number in the nearest units: the last one too late, the first one too
    early."""
    late = [unit for unit in _UNITS if number >= _LATEST_S * unit[1]][-1:]
    early = [unit for unit in _UNITS if number < _EARLIEST_S * unit[1]][:1]
    return " or ".join(
        f"{_year_or_time(number * 1000 // in_second)} in {name}"
        for name, in_second in [*late, *early]
    )


def _is_plausible(moment: int) -> bool:
    return _EARLIEST_S * 1000 <= moment < _LATEST_S * 1000


def _year_or_time(moment: int) -> str:
    """An instant for a sentence, even if Python's calendar does not have it."""
    text = format_time(moment, UTC, iso=True)
    if text.lstrip("-").isdigit():
        return "before the year 1" if moment < 0 else "after the year 9999"
    return text


def _moment(text: str, stripped: str, now_ms: int, zone: tzinfo | None) -> Instant | None:
    """The instant of a text that is no number, as :func:`_read`."""
    if epoch := re.fullmatch(r"@(\d{9,10})\.(\d{1,9})", stripped, re.ASCII):
        return Instant(int(epoch[1]) * 1000 + int(epoch[2].ljust(3, "0")[:3]), zone)
    span = _span(stripped)
    if span is not None:
        return Instant(now_ms + span, zone)
    try:
        return _calendar(stripped, now_ms, zone)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None


def _span(text: str) -> int | None:
    """Milliseconds from now of ``-1h30m``, ``now-1h``, ``2 days ago``; None for another text.

    ``1h`` and ``PT15M`` are before now, as in docker and kubectl. ``5 minutes`` is neither before
    nor after now: GNU date reads it as after now.
    """
    found = re.fullmatch(r"(?:now\s*)?([+-])\s*(\S.*)", text, re.IGNORECASE | re.ASCII)
    ago = re.fullmatch(r"(\d.*\S)\s+(ago|left)", text, re.IGNORECASE | re.ASCII)
    try:
        if found:
            return parse_span(found[2]) * (1 if found[1] == "+" else -1)
        if ago:
            return parse_span(ago[1]) * (1 if ago[2].lower() == "left" else -1)
        return -parse_duration(text)
    except ValueError:
        return None


def _calendar(text: str, now_ms: int, zone: tzinfo | None) -> Instant | None:
    """The instant of a date or a time of day. ValueError if there is no such day or time."""
    from .calendar_times import parse_calendar
    from .local_times import instant_by_abbreviation, instant_of

    parts = parse_calendar(text)
    if parts is None:
        return None
    abbreviation = None
    if parts.zone is not None:
        if parts.zone.isupper() and parts.zone.isalpha() and parts.zone not in {"UTC", "GMT"}:
            abbreviation = parts.zone
        else:
            zone = parse_zone(parts.zone)
    wall = parts.wall(to_datetime(now_ms, zone).date())
    if abbreviation is not None:
        return Instant(_since_epoch(instant_by_abbreviation(wall, zone, abbreviation)), zone)
    moment, doubt = instant_of(wall, zone)
    if parts.clock is None:
        doubt = None  # a day begins with its first instant
    if parts.checked_zone is not None:
        zone = _checked(parts, moment)
    return Instant(_since_epoch(moment), zone, doubt)


def _checked(parts: "CalendarTime", moment: datetime) -> tzinfo | None:
    """The zone in brackets after an offset. ValueError if the offset is not the zone's."""
    zone = parse_zone(parts.checked_zone or "")
    offset = moment.astimezone(zone).utcoffset()
    given = parse_zone(parts.zone or "")
    if given is None or given.utcoffset(None) != offset:
        raise ValueError(f"{parts.checked_zone} has another offset than {parts.zone} then")
    return zone


def _no_time(text: str, now_ms: int, zone: tzinfo | None) -> str:
    """The sentence about a text that has the form of no time, with the nearest one."""
    from .near_times import nearest_time
    from .time_forms import some_forms

    def is_time(other: str) -> bool:
        try:
            return _read(other, now_ms, zone) is not None
        except ValueError:
            return False

    near = nearest_time(text, is_time)
    shown = f"{text[:_MOST_DIGITS]!r} is not a time"
    if near is not None:
        return f"{shown}; did you mean {near!r}? ({_ALL_FORMS})"
    return f"{shown} (such as {some_forms()}; {_ALL_FORMS})"


def to_milliseconds(moment: datetime, zone: tzinfo | None = None) -> int:
    """Milliseconds of a date-time; ``zone`` (None: local) applies if it has none."""
    if moment.tzinfo is None:
        moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
    return _since_epoch(moment)


def _since_epoch(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def to_datetime(timestamp: int, zone: tzinfo | None = None) -> datetime:
    """The date-time of a timestamp in ``zone`` (None: local).

    Raises OverflowError or ValueError outside of the years 1..9999.
    """
    return (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)


def near_datetime(timestamp: int, zone: tzinfo | None) -> datetime:
    """The date-time of a stored time. A damaged time becomes the first or last day that every zone
    has."""
    return to_datetime(min(max(timestamp, EARLIEST), LATEST), zone)


def day_bounds(timestamp: int, zone: tzinfo | None) -> tuple[int, int]:
    """Milliseconds of the start of a stored time's day in ``zone`` (None: local), and of the next.

    A day may have 23 or 25 hours; where midnight occurs twice, it begins with the first. A damaged
    time is in the first or last day that every zone has.
    """
    from .local_times import instant_of

    day = near_datetime(timestamp, zone).replace(
        hour=0, minute=0, second=0, microsecond=0, fold=0, tzinfo=None
    )
    start, end = (instant_of(wall, zone)[0] for wall in (day, day + timedelta(days=1)))
    return _since_epoch(start), _since_epoch(end)


def format_time(timestamp: int, zone: tzinfo | None = None, *, iso: bool = False) -> str:
    """``2026-01-31 10:00:00.123``, or with ``iso`` ``2026-01-31T10:00:00.123+01:00``.

    A timestamp outside of Python's calendar is printed as a number.
    """
    try:
        moment = to_datetime(timestamp, zone)
    except (OverflowError, ValueError):
        return str(timestamp)
    if iso:
        return moment.isoformat("T", "milliseconds")
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds")


def parse_zone(text: str) -> tzinfo | None:
    """The zone of ``local`` (None), ``UTC``, ``+08:00`` or a name such as ``Europe/Berlin``.

    Raises ValueError for another text.
    """
    if text.lower() == "local":
        return None
    if text.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    if re.fullmatch(r"[+-]([01]\d|2[0-3]):?[0-5]\d", text, re.ASCII):
        zone = datetime.fromisoformat(f"2000-01-01T00:00{text}").tzinfo
        assert zone is not None
        return zone
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(
            f"{text!r} is not a time zone (such as local, UTC, +08:00 or Europe/Berlin)"
        ) from None
