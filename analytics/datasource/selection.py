"""The selection to read: Spark's filters, as bounds on positions and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_FAR: Final = 1 << 62
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES: Final = ("broker", "topic", "group", "queue_id")
_NUMBERS: Final = ("queue_offset", "commitlog_offset")
_NEVER_NULL: Final = (*_NAMES, "queue_offset")


class Selection(NamedTuple):
    """Selected names (None: all), and half-open ranges of numbers; times in ms."""

    broker: frozenset[Any] | None = None
    topic: frozenset[Any] | None = None
    group: frozenset[Any] | None = None
    queue_id: frozenset[Any] | None = None
    queue_offset: tuple[int, int] = (0, _FAR)
    commitlog_offset: tuple[int, int] = (0, _FAR)
    store_timestamp: tuple[int, int] = (0, _FAR)

    def wants(self, name: str, value: object) -> bool:
        """Whether a broker, topic, group or queue id is selected."""
        wanted: frozenset[Any] | None = self._asdict()[name]
        return wanted is None or value in wanted

    def narrowed(self, name: str, values: Iterable[Any]) -> Selection:
        """Only these of the names selected so far."""
        before: frozenset[Any] | None = self._asdict()[name]
        new = frozenset(values)
        return self._with(name, new if before is None else new & before)

    def bounded(self, name: str, low: int, high: int) -> Selection:
        """Only numbers in [low, high), too."""
        before_low, before_high = self._asdict()[name]
        return self._with(name, (max(before_low, low), min(before_high, high)))

    def _with(self, name: str, value: Any) -> Selection:
        return Selection(**{**self._asdict(), name: value})


EVERYTHING: Final = Selection()


def select(filters: Iterable[Filter]) -> tuple[Selection, list[Filter]]:
    """The selection of the filters, and those that are left for Spark to apply.

    Filters on names and queue offsets are applied here completely. Spark keeps those on times,
    whose microseconds are finer than a store's ms, those on log offsets, which are null where a
    unit is missing, and all others.
    """
    chosen = Selection()
    left = []
    for item in filters:
        kind = type(item).__name__
        column: Sequence[str] = getattr(item, "attribute", ())
        value: Any = getattr(item, "value", None)
        name = column[0] if len(column) == 1 else ""
        if kind == "IsNotNull" and name in _NEVER_NULL:
            continue
        if kind in {"EqualTo", "EqualNullSafe"} and name in _NAMES and value is not None:
            chosen = chosen.narrowed(name, [value])
        elif kind == "In" and name in _NAMES:
            chosen = chosen.narrowed(name, [one for one in value if one is not None])
        elif name == "store_timestamp" and isinstance(value, datetime):
            bounds = _bounds(kind, _ms(value), exact=False)
            if bounds is not None:
                chosen = chosen.bounded(name, *bounds)
            left.append(item)
        elif name in _NUMBERS and isinstance(value, int) and (bounds := _bounds(kind, value)):
            chosen = chosen.bounded(name, *bounds)
            if name not in _NEVER_NULL:
                left.append(item)
        else:
            left.append(item)
    return chosen, left


def _bounds(kind: str, value: int, *, exact: bool = True) -> tuple[int, int] | None:
    """The numbers that pass; not ``exact``: also those whose fraction would pass."""
    match kind:
        case "EqualTo":
            return value, value + 1
        case "GreaterThan":
            return value + exact, _FAR
        case "GreaterThanOrEqual":
            return value, _FAR
        case "LessThan":
            return 0, value + (not exact)
        case "LessThanOrEqual":
            return 0, value + 1
    return None


def _ms(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)
