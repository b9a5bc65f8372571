"""Instants: parsing and formatting.

All are integer milliseconds since 1970-01-01 UTC. A time without a zone is read in the zone of the
call, by default the local one. Every option and file with a time is parsed by :func:`parse_time`:

=========================== ====================================================================
``0``                       1970-01-01: before every message
a whole number              seconds, milliseconds, microseconds or nanoseconds since 1970: the one
                            unit in which the number lies between 1990 and 2200
``20260131100000``          yyyyMMddHHmmss, as in RocketMQ's consumeTimestamp
``2026-01-31``              a day; a time of day after ``T`` or a blank, and a zone, may follow
``2026-01-31#10:00:00:000`` mqadmin's form
``now``, ``-15m``, ``PT15M`` relative to now; ``+15m`` is in the future
=========================== ====================================================================

A time before 1990 or after 2200 is refused, and the error shows how it was read: it is a number in
another unit or a typing error, and would silently mean the start or the end of a queue.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from .durations import parse_duration

# Text, compiled on first use: most commands use none.
_ISO: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?"
_MQADMIN: Final = r"(\d{4}-\d\d-\d\d)#(\d\d:\d\d:\d\d):(\d{3})"
_COMPACT: Final = r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)"
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
_FORMS: Final = "now, 1767225600, 1767225600000, 2026-01-31, 2026-01-31T10:00, -15m or PT15M"

EARLIEST: Final = -62_135_424_000_000
"""The third day of the year 1, in ms: Python cannot express earlier days in every zone."""
LATEST: Final = 253_402_041_600_000
"""The same before the end of the year 9999."""


def parse_time(text: str, now_ms: int, zone: tzinfo | None = None) -> int:
    """Milliseconds of an instant; relative ones count back from ``now_ms``.

    ``zone`` is the zone of a time without one; None is the local zone. ``-15m`` and ``PT15M`` are
    before now, ``+15m`` is after it. ValueError for malformed text, and for a time before 1990 or
    after 2200 other than 0.
    """
    stripped = text.strip()
    if stripped == "now":
        return now_ms
    if stripped.isascii() and stripped.isdigit():
        return _number(text, stripped, zone)
    moment = _moment(text, stripped, now_ms, zone)
    if moment and not _is_plausible(moment):
        raise ValueError(
            f"{text!r} would be {_year_or_time(moment)}: a time must lie between 1990 and 2200 "
            "(0 is before every message)"
        )
    return moment


def parse_epoch(number: int) -> int:
    """Milliseconds of a number in any unit; ValueError if it is a time in none."""
    return _number(str(number), str(number), None)


def check_order(first: int | None, last: int | None, names: tuple[str, str]) -> None:
    """Raise ValueError if a time range ends before it begins; None is an open end."""
    if first is not None and last is not None and first > last:
        raise ValueError(
            f"{names[0]} is {format_time(first, UTC, iso=True)} and {names[1]} is "
            f"{format_time(last, UTC, iso=True)}: the range ends before it begins"
        )


def _number(text: str, digits: str, zone: tzinfo | None) -> int:
    """Milliseconds of digits alone."""
    if len(digits) > _MOST_DIGITS or not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text[:_MOST_DIGITS]!r} is not a time (such as {_FORMS})")
    number = int(digits)
    if not number:
        return 0
    for _, in_second in _UNITS:
        if _EARLIEST_S * in_second <= number < _LATEST_S * in_second:
            return number * 1000 // in_second
    compact = re.fullmatch(_COMPACT, digits, re.ASCII)
    if compact:
        try:
            moment = to_milliseconds(datetime(*map(int, compact.groups())), zone)  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            moment = 0
        if _is_plausible(moment):
            return moment
    raise ValueError(
        f"{text!r} would be {_readings(number)}: a time must lie between 1990 and 2200, in "
        "seconds, milliseconds, microseconds or nanoseconds (0 is before every message)"
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


def _moment(text: str, stripped: str, now_ms: int, zone: tzinfo | None) -> int:
    if stripped[:1] in {"-", "+"} or stripped[:1].upper() == "P":
        sign = 1 if stripped.startswith("+") else -1
        try:
            return now_ms + sign * parse_duration(stripped[stripped[0] in "+-" :])
        except ValueError:
            raise ValueError(f"{text!r} is not a time (such as {_FORMS})") from None
    mqadmin = re.fullmatch(_MQADMIN, stripped, re.ASCII)
    if mqadmin:
        stripped = f"{mqadmin[1]}T{mqadmin[2]}.{mqadmin[3]}"
    if not re.fullmatch(_ISO, stripped, re.ASCII | re.IGNORECASE):
        raise ValueError(f"{text!r} is not a time (such as {_FORMS})")
    try:
        moment = datetime.fromisoformat(stripped.upper().replace(" Z", "Z").replace(",", "."))
        return to_milliseconds(moment, zone)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None


def to_milliseconds(moment: datetime, zone: tzinfo | None = None) -> int:
    """Milliseconds of a date-time; ``zone`` (None: local) applies if it has none."""
    if moment.tzinfo is None:
        moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
    since = moment - _EPOCH
    return since // timedelta(milliseconds=1)


def to_datetime(timestamp: int, zone: tzinfo | None = None) -> datetime:
    """The date-time of a timestamp in ``zone`` (None: local).

    Raises OverflowError or ValueError outside of the years 1..9999.
    """
    return (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)


def near_datetime(timestamp: int, zone: tzinfo | None) -> datetime:
    """The date-time of a stored time. A damaged time becomes the first or last day that every zone
    has."""
    return to_datetime(min(max(timestamp, EARLIEST), LATEST), zone)


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
    """The zone of ``local`` (None), ``UTC``, ``+08:00`` or a name such as ``Europe/Berlin``."""
    if text.lower() == "local":
        return None
    if text.upper() in {"UTC", "Z", "GMT"}:
        return UTC
    if re.fullmatch(r"[+-]\d\d:?\d\d", text, re.ASCII):
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
