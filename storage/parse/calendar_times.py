"""Times of the calendar and the clock as text: ``2026-01-31 10:00 UTC``, ``last friday 17:30``.

A text is read in two steps, because "today" depends on the zone: :func:`parse_calendar` splits the
text, and :meth:`CalendarTime.wall` gives the date and the time of day, once today's date is known.
Weekdays mean what they mean in GNU date; ``today``, ``yesterday`` and ``tomorrow`` begin at 00:00,
as in systemd.time and journalctl.
"""

import re
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple

from .local_times import LOCAL

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY_FORMS: Final = {
    **{name: number for number, name in enumerate(WEEKDAYS)},
    **{name[:3]: number for number, name in enumerate(WEEKDAYS)},
    "tues": 1,
    "wednes": 2,
    "thur": 3,
    "thurs": 3,
}
DAY_WORDS: Final = {"yesterday": -1, "today": 0, "tomorrow": 1}
_DAYS: Final = {"day": 1, "days": 1, "week": 7, "weeks": 7}
_WEEKS: Final = {"last": -1, "this": 0, "next": 1}

# Patterns are text, compiled on first use: most commands use none.
_DATE: Final = r"(\d{4})([-/])(\d\d)\2(\d\d)"
_CLOCK: Final = r"(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(am|pm)?"
_HOUR: Final = r"(\d{1,2})(am|pm)"
_MQADMIN: Final = r"(\d{4}-\d\d-\d\d)#(\d\d:\d\d:\d\d):(\d{3})"
_OFFSET: Final = r"(.*\d:\d\d.*?)(?<!\d{4}-\d\d)\s*([+-]\d\d(?::?\d\d)?)"
_CHECKED_ZONE: Final = r"(.*?[\dZz])\s*(?:\[([^\[\]]+)\]|\(([^()]+)\))"
_NOON: Final = 12


class CalendarTime(NamedTuple):
    """A time of the calendar; what is None is given by the day of the call, or its zone."""

    day: date | None = None
    days_from_today: int | None = None
    weekday: int | None = None
    """0 is Monday. With a ``day`` it must be that day's."""
    week: int = 0
    """-1, 0 or 1: the last, this or the next such weekday."""
    month_day: tuple[int, int] | None = None
    """Month and day of the current year."""
    clock: time | None = None
    zone: str | None = None
    """The zone in the text: ``UTC``, ``+01:00``, ``Europe/Berlin``, or an abbreviation."""
    checked_zone: str | None = None
    """A zone in brackets after an offset, which must be an offset of that zone."""

    def wall(self, today: date) -> datetime:
        """The date and time of day. ValueError if there is no such day."""
        return datetime.combine(self._day(today), self.clock or time())

    def _day(self, today: date) -> date:
        if self.day is not None:
            if self.weekday not in {None, self.day.weekday()}:
                raise ValueError(f"{self.day} is a {WEEKDAYS[self.day.weekday()].capitalize()}")
            return self.day
        if self.month_day is not None:
            return date(today.year, *self.month_day)
        if self.days_from_today is not None:
            return today + timedelta(self.days_from_today)
        if self.weekday is None:
            return today
        # GNU date: this weekday is today or comes next; "next" skips today, "last" is before it.
        ahead = (self.weekday - today.weekday()) % 7
        weeks = 0 if self.week > 0 and ahead else self.week
        return today + timedelta(ahead + 7 * weeks)


def parse_calendar(text: str) -> CalendarTime | None:
    """The parts of a text; None if it has other words than those of a time.

    ValueError for parts with the right form and impossible numbers, such as 25:00.
    """
    found: dict[str, object] = {}
    rest = _without_zone(_plain(text), found)
    words = [word.removesuffix(",") for word in rest.split()]
    place = 0
    while place < len(words):
        read = _read_words(words[place:], found)
        if not read:
            return None
        place += read
    return _whole(found)


def _plain(text: str) -> str:
    """The text with a blank between date and time, and mqadmin's form as ISO 8601."""
    mqadmin = re.fullmatch(_MQADMIN, text, re.ASCII)
    if mqadmin:
        return f"{mqadmin[1]} {mqadmin[2]}.{mqadmin[3]}"
    return re.sub(r"(\d{4}-\d\d-\d\d)[Tt](?=\d\d:)", r"\1 ", text, count=1)


def _without_zone(text: str, found: dict[str, object]) -> str:
    """The text before a numeric offset, a ``Z``, or a zone in brackets."""
    checked = re.fullmatch(_CHECKED_ZONE, text, re.ASCII)
    if checked:
        text = checked[1]
        if checked[3] != LOCAL:
            found["checked_zone"] = checked[2] or checked[3]
    offset = re.fullmatch(_OFFSET, text, re.ASCII)
    if offset:
        found["zone"] = offset[2] if len(offset[2]) > len("+01") else f"{offset[2]}:00"
        return offset[1]
    if re.fullmatch(r".*\d\s*[Zz]", text, re.ASCII):
        found["zone"] = "UTC"
        return text[:-1].rstrip()
    return text


def _read_words(words: list[str], found: dict[str, object]) -> int:
    """Read the first words into ``found``; returns their number, 0 if they are of no time."""
    raw = words[0]
    word = raw.lower()
    following = words[1].lower() if len(words) > 1 else ""
    if word == "at" and found and following:
        return 1
    if day := re.fullmatch(_DATE, word, re.ASCII):
        return _put(found, "day", date(int(day[1]), int(day[3]), int(day[4])), 1)
    if re.fullmatch(_CLOCK, word, re.ASCII) or re.fullmatch(_HOUR, word, re.ASCII):
        half = following in {"am", "pm"} and not word.endswith("m")
        return _put(found, "clock", _clock(word + following if half else word), 1 + half)
    if word.isdigit() and following in {"am", "pm"}:
        return _put(found, "clock", _clock(word + following), 2)
    if word.isdigit() and " ".join(words[2:3]).lower() == "ago" and following in _DAYS:
        return _put(found, "days_ago", -int(word) * _DAYS[following], 3)
    if word in DAY_WORDS:
        return _put(found, "days_from_today", DAY_WORDS[word], 1)
    if word in _WEEKS and following in _WEEKDAY_FORMS:
        found["week"] = _WEEKS[word]
        return _put(found, "weekday", _WEEKDAY_FORMS[following], 2)
    if word in _WEEKDAY_FORMS:
        return _put(found, "weekday", _WEEKDAY_FORMS[word], 1)
    if _month(word):
        return _put(found, "month", _month(word), 1)
    if re.fullmatch(r"\d{1,2}", word, re.ASCII):
        return _put(found, "number", int(word), 1)
    if re.fullmatch(r"\d{4}", word, re.ASCII):
        return _put(found, "year", int(word), 1)
    if found and re.fullmatch(r"[A-Z]{3,5}|[A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+", raw, re.ASCII):
        return _put(found, "zone", raw, 1)
    if found and word in {"utc", "gmt"}:
        return _put(found, "zone", "UTC", 1)
    return 0


def _put(found: dict[str, object], name: str, value: object, count: int) -> int:
    """Remember a part; a second one of its kind is no time."""
    if name in found:
        return 0
    found[name] = value
    return count


def _whole(found: dict[str, object]) -> CalendarTime | None:
    """The parts as a time; None if they do not go together."""
    month, number, year = (found.pop(name, None) for name in ("month", "number", "year"))
    if (month is None) != (number is None) or (year is not None and month is None):
        return None
    if month is not None and "day" in found:
        return None
    if isinstance(month, int) and isinstance(number, int):
        if isinstance(year, int):
            found["day"] = date(year, month, number)
        else:
            date(2024, month, number)  # a leap year: the day of some year
            found["month_day"] = month, number
    if "days_ago" in found:
        if "clock" not in found or "days_from_today" in found:
            return None  # without a time of day it is a span, not days of the calendar
        found["days_from_today"] = found.pop("days_ago")
    days = [name for name in ("day", "month_day", "days_from_today") if name in found]
    if len(days) > 1 or ("weekday" in found and {*days} & {"days_from_today", "month_day"}):
        return None
    if not days and not {"weekday", "clock"} & found.keys():
        return None
    if "zone" not in found and "checked_zone" in found:
        found["zone"] = found.pop("checked_zone")
    return CalendarTime(**found)  # type: ignore[arg-type]


def _month(word: str) -> int:
    """The number of a month's name, or 0."""
    if word in MONTHS:
        return MONTHS.index(word) + 1
    return _MONTH_NAMES.index(word) + 1 if word in _MONTH_NAMES else 0


def _clock(word: str) -> time:
    """The time of day of ``9:30``, ``09:30:15.5``, ``3pm`` or ``3:30pm``. ValueError if there is
    none."""
    found = re.fullmatch(_CLOCK, word, re.ASCII)
    if found:
        hour, minute, second, fraction, half = found.groups()
    else:
        brief = re.fullmatch(_HOUR, word, re.ASCII)
        if not brief:
            raise ValueError(f"{word!r} is not a time of day")
        (hour, half), minute, second, fraction = brief.groups(), "0", None, None
    hours = int(hour)
    if half:
        if not 1 <= hours <= _NOON:
            raise ValueError(f"{word!r} is not a time of day")
        hours = hours % _NOON + (_NOON if half == "pm" else 0)
    micros = int((fraction or "0").ljust(6, "0")[:6])
    return time(hours, int(minute), int(second or 0), micros)
