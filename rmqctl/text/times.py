"""Instants: every way to write one, and how they are printed.

All are integer milliseconds since 1970-01-01 UTC. What has no zone is read in the zone that
was asked for, the machine's own by default.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from rmqctl.text.durations import parse_duration

# Text, compiled with its first use, which most commands have none of.
_ISO: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?"
_MQADMIN: Final = r"(\d{4}-\d\d-\d\d)#(\d\d:\d\d:\d\d):(\d{3})"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FORMS: Final = "now, 1767225600, 1767225600000, 2026-01-31, 2026-01-31T10:00, -15m or PT15M"


def parse_time(text: str, now_ms: int, zone: tzinfo | None = None) -> int:
    """Milliseconds of an instant; relative ones count back from ``now_ms``.

    ``zone`` is that of a time that names none; None is the machine's own. ``-15m`` and
    ``PT15M`` lie before now, ``+15m`` after it. ``yyyy-MM-dd#HH:mm:ss:SSS`` is mqadmin's form.
    """
    stripped = text.strip()
    if stripped == "now":
        return now_ms
    if stripped.isascii() and stripped.isdigit():
        if len(stripped) == 13:
            return int(stripped)
        if len(stripped) == 10:
            return int(stripped) * 1000
        raise ValueError(
            f"{text!r} is no time: an epoch has 10 digits (seconds) or 13 (milliseconds)"
        )
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
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None
    return to_milliseconds(moment, zone)


def to_milliseconds(moment: datetime, zone: tzinfo | None = None) -> int:
    """Milliseconds of a date-time; ``zone`` (None: local) is that of one without a zone."""
    if moment.tzinfo is None:
        moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
    since = moment - _EPOCH
    return since // timedelta(milliseconds=1)


def to_datetime(timestamp: int, zone: tzinfo | None = None) -> datetime:
    """The date-time of a timestamp in ``zone`` (None: local).

    Raises OverflowError or ValueError outside of the years 1..9999.
    """
    return (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)


def format_time(timestamp: int, zone: tzinfo | None = None, *, iso: bool = False) -> str:
    """``2026-01-31 10:00:00.123``, or with ``iso`` ``2026-01-31T10:00:00.123+01:00``.

    A timestamp that no calendar has is printed as its number.
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
