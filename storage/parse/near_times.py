"""The nearest form of a text that is not a time, for its error."""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Final

from .calendar_times import DAY_WORDS, MONTHS, WEEKDAYS

_WORDS: Final = (*DAY_WORDS, *WEEKDAYS, *(name.capitalize() for name in MONTHS))
_MORE_WORDS: Final = ("now", "ago", "last", "next", "minutes", "hours", "days", "weeks")
_OTHERS: Final = {
    "noon": "12:00",
    "midday": "12:00",
    "midnight": "today",
    "currenttime": "now",
    "start": "0",
    "beginning": "0",
    "earliest": "0",
    "epoch": "0",
    "end": "now",
    "latest": "now",
    "tonight": "today 20:00",
    "last hour": "1h ago",
    "last day": "1 day ago",
    "last week": "7 days ago",
    "last month": "30 days ago",
    "now/d": "today",
    "now/h": "1h ago",
}
"""Words of other tools and of speech."""
_LONGEST: Final = 40


def nearest_time(text: str, is_time: Callable[[str], bool]) -> str | None:
    """The text with its slip mended, if that makes it a time; else None."""
    if len(text) > _LONGEST:
        return None
    return next((near for near in _mended(text.strip()) if near != text and is_time(near)), None)


def _mended(text: str) -> Iterator[str]:
    lower = " ".join(text.lower().split())
    if lower in _OTHERS:
        yield _OTHERS[lower]
    if re.search(r"\dM\b", text):
        yield re.sub(r"(\d)M\b", r"\1min", text)
    yield lower
    yield text.removeprefix("@")
    yield re.sub(r"\s*[+-]\d{1,2}$", "", text)
    yield from _dates(text)
    if clock := re.fullmatch(r"(\d{1,2})[h.]?(\d\d)h?", lower, re.ASCII):
        yield f"{clock[1]}:{clock[2]}"
    if re.fullmatch(r"[+-]?\d+", lower, re.ASCII):
        yield f"{lower}m"
    if re.match(r"\d+(\.\d+)?\s*[a-z]", lower):
        yield f"{lower} ago"
    if re.search(r"\D24:00", f" {lower}"):
        yield text.replace("24:00", "23:59")
    yield _known_words(text)


def _dates(text: str) -> Iterator[str]:
    """Dates with parts in another order, with one digit, or left out."""
    if year_first := re.match(r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?(?!\d)", text, re.ASCII):
        year, month, day = year_first.groups()
        rest = text[year_first.end() :]
        rest = re.sub(r"^([T ]\d\d)$", r"\1:00", rest)
        yield f"{year}-{int(month):02}-{int(day or 1):02}{rest}"
        yield f"{year}-{int(month):02}-{int(day or 1):02}"
    if year_last := re.match(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?!\d)", text, re.ASCII):
        one, sign, other, year = year_last.groups()
        rest = text[year_last.end() :]
        american = sign == "/"  # 01/31/2026, and 31.01.2026 or 31-01-2026
        orders = [(one, other), (other, one)] if american else [(other, one), (one, other)]
        for month, day in orders:
            yield f"{year}-{int(month):02}-{int(day):02}{rest}"
    if short := re.match(r"(\d\d)-(\d\d)-(\d\d)(?!\d)", text, re.ASCII):
        yield f"20{text}"
        yield f"20{short[3]}-{short[2]}-{short[1]}{text[short.end() :]}"


def _known_words(text: str) -> str:
    """The text with each word that is nearly one of a time put right."""
    known = {word.lower(): word for word in (*_WORDS, *_MORE_WORDS)}

    def put_right(found: re.Match[str]) -> str:
        close = get_close_matches(found[0].lower(), known, 1, 0.6)
        return known[close[0]] if close else found[0]

    return re.sub(r"[A-Za-z]{2,}", put_right, text)
