"""Headings of human tables: what the values are, without the unit that they do not show."""

from collections.abc import Sequence
from datetime import timedelta, tzinfo
from typing import Final

from rmqctl.output.fields import Field, Kind
from storage.parse.times import to_datetime

_TIMESTAMP: Final = "_timestamp"
_DURATION: Final = "_ms"
_OWN: Final = {"store_timestamp": "stored"}
_ZERO: Final = timedelta()


def headings(fields: Sequence[Field], zone: str, *, raw: bool) -> list[str]:
    """The heading of each column, in lower case: ``age`` for ``age_ms``, ``stored (UTC+1)`` for
    ``store_timestamp``.

    With ``--raw`` the values are numbers in the unit of the name, so the heading is the name.
    """
    if raw:
        return [field.name for field in fields]
    names = {field.name for field in fields}
    return [_heading(field, zone, names) for field in fields]


def field_of_heading(name: str, fields: Sequence[Field]) -> Field | None:
    """The field with a name, or with a name as its heading: ``age`` is ``age_ms``."""
    wanted = name.replace("-", "_").lower()
    for field in fields:
        if field.name == wanted:
            return field
    for field, heading in zip(fields, headings(fields, "", raw=False), strict=True):
        if heading.partition(" (")[0] == wanted:
            return field
    return None


def _heading(field: Field, zone: str, names: set[str]) -> str:
    name = field.name
    if field.kind is Kind.DURATION and name.endswith(_DURATION):
        short = name.removesuffix(_DURATION)
        return name if short in names else short
    if field.kind is not Kind.TIMESTAMP:
        return name
    short = _OWN.get(name) or name.removesuffix(_TIMESTAMP)
    if short in names and short != name:
        short += "_time"
    return f"{short} ({zone})"


def in_capitals(heading: str) -> str:
    """The heading of a table; the zone keeps its case."""
    name, blank, zone = heading.partition(" (")
    return name.upper() + blank + zone


class Times:
    """Formats the times of one table; all of them have the offset of the heading.

    A time of another offset, across a change of daylight saving, has its own after it.
    """

    def __init__(self, zone: tzinfo | None, now_ms: int) -> None:
        self._zone = zone
        self._now_ms = now_ms
        self._offset: timedelta | None = None

    @property
    def label(self) -> str:
        """The offset in the heading: ``UTC``, ``UTC+1``, ``UTC-3:30``."""
        offset = self._offset
        if offset is None:  # no time in the table
            offset = to_datetime(self._now_ms, self._zone).utcoffset() or _ZERO
        minutes = round(offset.total_seconds() / 60)
        if not minutes:
            return "UTC"
        hours, rest = divmod(abs(minutes), 60)
        return f"UTC{'-' if minutes < 0 else '+'}{hours}{f':{rest:02d}' if rest else ''}"

    def text(self, timestamp: int) -> str:
        """The time, as a cell shows it; a number outside of Python's calendar."""
        try:
            moment = to_datetime(timestamp, self._zone)
        except (OverflowError, ValueError):
            return str(timestamp)
        offset = moment.utcoffset() or _ZERO
        if self._offset is None:
            self._offset = offset
        if offset == self._offset:
            moment = moment.replace(tzinfo=None)
        return moment.isoformat(" ", "milliseconds")
