"""The selection to read: Spark's filters, as bounds on positions and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.report.stores import as_text

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_FAR: Final = 1 << 62
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN: Final = 5
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
    queue_offsets: frozenset[Any] | None = None
    """Some of those in ``queue_offset``."""
    tags: frozenset[Any] | None = None
    """Only bounds what is read: the reader compares hashes."""
    topic_prefixes: tuple[str, ...] = ()
    """Each of them begins the name of a selected topic."""

    def wants(self, name: str, value: object) -> bool:
        """Whether a broker, topic, group or queue id is selected. Filters are on names as rows show
        them."""
        wanted: frozenset[Any] | None = self._asdict()[name]
        if isinstance(value, str):
            value = as_text(value)
        if name == "topic" and not all(map(str(value).startswith, self.topic_prefixes)):
            return False
        return wanted is None or value in wanted

    @property
    def selects_some(self) -> bool:
        """Whether topics or queues are left out."""
        return bool(self.topic_prefixes) or self.topic is not None or self.queue_id is not None

    def sentence(self) -> str:
        """What is selected, for a log."""
        parts = []
        for name, value in self._asdict().items():
            if value == Selection._field_defaults[name]:
                continue
            if name == "topic_prefixes":
                parts += [f"topic like {prefix + '%'!r}" for prefix in value]
            elif isinstance(value, frozenset):
                some = ", ".join(repr(one) for one in sorted(value)[:_SHOWN])
                more = f", ... ({len(value)})" if len(value) > _SHOWN else ""
                parts.append(f"{name.removesuffix('s')} in ({some}{more})")
            else:
                low, high = value
                parts += [f"{name} >= {low}"] if low else []
                parts += [f"{name} < {high}"] if high < _FAR else []
        return " and ".join(parts)

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
    unit is missing, those on tags, of which only hashes are compared here, and all others.
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
        elif kind == "StringStartsWith" and name == "topic" and isinstance(value, str):
            chosen = chosen._replace(topic_prefixes=(*chosen.topic_prefixes, value))
        elif kind == "In" and name in _NUMBERS and all(map(_is_number, value)):
            numbers = [one for one in value if one is not None]
            chosen = chosen.bounded(name, min(numbers, default=0), max(numbers, default=-1) + 1)
            if name in _NEVER_NULL:
                chosen = chosen.narrowed("queue_offsets", numbers)
            else:
                left.append(item)
        elif name == "tags" and (tags := _tags(kind, value)):
            chosen = chosen.narrowed("tags", tags)
            left.append(item)
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


def _is_number(value: object) -> bool:
    return value is None or type(value) is int


def _tags(kind: str, value: Any) -> list[str]:
    """The tags that pass; none if that is not known. A question mark may stand for other bytes."""
    values = [value] if kind == "EqualTo" else value if kind == "In" else ()
    found = [one for one in values if one is not None]
    return found if all(isinstance(one, str) and one and "?" not in one for one in found) else []


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
