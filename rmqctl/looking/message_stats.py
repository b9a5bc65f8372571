"""Counting messages by what they have in common, over the whole log or a part of it.

Each process counts its pieces; tables of at most some hundred thousand values are merged. What has
more different values than that (keys) has the rest counted together.
"""

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.rows.message_stats import MessageStats, StatsRow, TimeStatsRow
from storage.format.sys_flag import MessageSysFlag

if TYPE_CHECKING:
    from datetime import tzinfo

    from storage.model import MessageExt

OTHERS: Final = "(others)"
_MOST_VALUES: Final = 200_000
_TOP: Final = 10
_HOUR_MS: Final = 3_600_000
SPANS: Final = {"minute": 60_000, "hour": _HOUR_MS, "day": 24 * _HOUR_MS}
_Cell = list[int]  # messages, bytes, body bytes, first and last store time
Table = dict[Any, _Cell]


def _host(message: "MessageExt") -> tuple[str, ...]:
    return (message.born_host.rpartition(":")[0],)


VALUES: Final[Mapping[str, Callable[["MessageExt"], Iterable[Any]]]] = {
    "topic": lambda message: (message.topic,),
    "queue": lambda message: (f"{message.topic}:{message.queue_id}",),
    "tag": lambda message: (message.tags,),
    "key": lambda message: message.keys or (None,),
    "host": _host,
    "attempts": lambda message: (str(message.reconsume_times),),
}


class Facts(NamedTuple):
    """What is counted of all messages together: plain numbers, so that they can be merged."""

    compressed: int = 0
    with_keys: int = 0
    retried: int = 0


class Counter:
    """Counts messages by some properties; see the names in VALUES and SPANS."""

    def __init__(self, names: Iterable[str], zone: "tzinfo | None" = None) -> None:
        self._names = tuple(names)
        self._zone = zone
        self._starts = {name: _starts_of(name, zone) for name in self._names if name in SPANS}
        self.tables: dict[str, Table] = {name: {} for name in self._names}
        self.total: _Cell = [0, 0, 0, 0, 0]
        self.facts = Facts()
        self.sizes: dict[int, int] = {}
        """Messages by the size of their body, to 1/8."""
        self.least: int | None = None
        self.most: int | None = None

    def fresh(self) -> "Counter":
        """One that counts the same and has counted nothing yet."""
        return Counter(self._names, self._zone)

    def add(self, message: "MessageExt") -> None:
        """Count one message."""
        time, size, body = message.store_timestamp, message.store_size, len(message.stored_body)
        _add(self.total, 1, size, body, time, time)
        for name in self._names:
            table = self.tables[name]
            starts = self._starts.get(name)
            values = VALUES[name](message) if starts is None else (starts(time),)
            for value in values:
                _add(_cell(table, value), 1, size, body, time, time)
        facts = self.facts
        self.facts = Facts(
            facts.compressed + bool(message.sys_flag & MessageSysFlag.COMPRESSED_FLAG),
            facts.with_keys + bool(message.keys),
            facts.retried + (message.reconsume_times > 0),
        )
        bucket = _bucket(body)
        self.sizes[bucket] = self.sizes.get(bucket, 0) + 1
        self.least = body if self.least is None else min(self.least, body)
        self.most = body if self.most is None else max(self.most, body)

    def packed(self) -> bytes:
        """Everything as bytes, for :meth:`merge` in another process of the same call."""
        facts = (self.tables, self.total, tuple(self.facts), self.sizes, self.least, self.most)
        return marshal.dumps(facts)

    def merge(self, packed: bytes) -> None:
        """Add what another one has counted."""
        tables, total, facts, sizes, least, most = marshal.loads(packed)
        if total[0]:
            _add(self.total, *total)
        for name, table in tables.items():
            for value, cell in table.items():
                _add(_cell(self.tables[name], value), *cell)
        self.facts = Facts(*map(sum, zip(self.facts, facts, strict=True)))
        for bucket, count in sizes.items():
            self.sizes[bucket] = self.sizes.get(bucket, 0) + count
        known = [size for size in (self.least, least) if size is not None]
        self.least = min(known, default=None)
        known = [size for size in (self.most, most) if size is not None]
        self.most = max(known, default=None)

    def rows(self, name: str) -> Iterator[StatsRow]:
        """The table of a property, the most frequent first."""
        for value, cell in _by_count(self.tables[name]):
            yield StatsRow(value, cell[0], self._share(cell), *cell[1:])

    def time_rows(self, name: str) -> Iterator[TimeStatsRow]:
        """The table of spans of time, in order; spans without messages are left out."""
        for start, cell in sorted(self.tables[name].items()):
            rate = round(cell[0] * 1000 / SPANS[name], 3)
            yield TimeStatsRow(start, cell[0], self._share(cell), cell[1], cell[2], rate)

    def summary(self, damaged: int) -> MessageStats:
        """All messages in one row."""
        count, size, body, first, last = self.total
        hours = (last - first) / _HOUR_MS if count else 0
        return MessageStats(
            count,
            size,
            body,
            first if count else None,
            last if count else None,
            round(count / hours, 1) if hours else None,
            self.least,
            self._percentile(0.5),
            self._percentile(0.99),
            self.most,
            self.facts.compressed,
            self.facts.with_keys,
            self.facts.retried,
            self._top("topic"),
            self._top("tag"),
            self._top("key"),
            self._top("host"),
            damaged,
        )

    def _share(self, cell: _Cell) -> float:
        return round(100 * cell[0] / self.total[0], 2)

    def _percentile(self, part: float) -> int | None:
        """The largest size of the bucket in which it lies, but no more than there is."""
        wanted = part * self.total[0]
        passed = 0
        for bucket in sorted(self.sizes):
            passed += self.sizes[bucket]
            if passed >= wanted:
                return min(_largest_in(bucket), self.most or 0)
        return None

    def _top(self, name: str) -> list[dict[str, Any]]:
        rows = [
            (value, cell)
            for value, cell in _by_count(self.tables.get(name, {}))
            if value is not None
        ]
        return [{name: value, "messages": cell[0], "bytes": cell[1]} for value, cell in rows[:_TOP]]


def _by_count(table: Table) -> list[tuple[Any, _Cell]]:
    return sorted(table.items(), key=lambda item: (-item[1][0], str(item[0])))


def _cell(table: Table, value: Any) -> _Cell:
    cell = table.get(value)
    if cell is None:
        if len(table) >= _MOST_VALUES:
            value = OTHERS
        cell = table.setdefault(value, [0, 0, 0, 0, 0])
    return cell


def _add(cell: _Cell, count: int, size: int, body: int, first: int, last: int) -> None:
    cell[3] = min(cell[3], first) if cell[0] else first
    cell[4] = max(cell[4], last)
    cell[0] += count
    cell[1] += size
    cell[2] += body


def _bucket(size: int) -> int:
    """A number that rises with the size: eight to each power of two, one each below 16."""
    if size < 16:
        return size
    shift = size.bit_length() - 4
    return (shift << 3) + (size >> shift)


def _largest_in(bucket: int) -> int:
    if bucket < 16:
        return bucket
    shift = (bucket >> 3) - 1
    return ((bucket - (shift << 3) + 1) << shift) - 1


def _starts_of(name: str, zone: "tzinfo | None") -> Callable[[int], int]:
    """A function that gives the beginning of the span in which a time lies, in a zone."""
    from datetime import datetime

    span = SPANS[name]
    known: dict[int, int] = {}

    def start(time: int) -> int:
        if name == "minute":
            return time - time % span
        quarter = time // 900_000  # the clocks of no zone are changed within one
        offset = known.get(quarter)
        if offset is None:
            local = datetime.fromtimestamp(time / 1000, zone).astimezone(zone)
            shift = local.utcoffset()
            offset = known[quarter] = int(shift.total_seconds() * 1000) if shift else 0
        return time - (time + offset) % span

    return start
