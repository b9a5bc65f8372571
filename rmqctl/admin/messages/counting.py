"""Counting messages by common properties, over the whole log or a part of it.

Each process counts its pieces; the tables are merged. A table has at most some hundred thousand
values; further values (of keys, of minutes) are counted together.
"""

import marshal
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from storage.format.sys_flag import MessageSysFlag

from .stats_rows import MessageStats, StatsRow, TimeStatsRow, TimeValueStatsRow
from .stats_values import KEY, SPANS, length_of, value_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from storage.format.message import MessageExt

OTHERS: Final = "(others)"
_MOST_VALUES: Final = 200_000
_MOST_GROUPS: Final = 10_000
_TOP: Final = 10
_Cell = list[int]  # messages, bytes, body bytes, first and last store time
Table = dict[Any, _Cell]


class Counter:
    """Counts messages by some properties; for their names see stats_values."""

    def __init__(self, names: Iterable[str], zone: "tzinfo | None" = None) -> None:
        self._names = tuple(names)
        self._zone = zone
        self.tables: dict[str, Table] = {name: {} for name in self._names}
        self._keys = self.tables.get(KEY)
        values = [name for name in self._names if name != KEY]
        self._values = [value_of(name, zone) for name in values]
        self._singles = [self.tables[name] for name in values]
        self._groups: dict[tuple[Any, ...], _Cell] = {}
        self.total: _Cell = [0, 0, 0, 0, 0]
        self._compressed = self._with_keys = self._retried = 0
        self.sizes: dict[int, int] = {}
        """Messages by the size of their bodies, with a precision of 1/8."""
        self.least: int | None = None
        self.most: int | None = None

    def fresh(self) -> "Counter":
        """A new counter of the same properties."""
        return Counter(self._names, self._zone)

    def add(self, message: "MessageExt") -> None:
        """Count one message. Called once per message, so values are not computed twice."""
        time, size, body = message.store_timestamp, message.store_size, len(message.stored_body)
        keys = message.keys
        group = tuple([value(message) for value in self._values])
        cell = self._groups.get(group)
        if cell is None:
            if len(self._groups) >= _MOST_GROUPS:
                self._ungroup()
            cell = self._groups[group] = [0, 0, 0, 0, 0]
        _count(cell, size, body, time)
        if self._keys is not None:
            for key in dict.fromkeys(keys) or (None,):
                _count(self._keys.get(key) or _cell(self._keys, key), size, body, time)
        if message.sys_flag & MessageSysFlag.COMPRESSED_FLAG:
            self._compressed += 1
        if keys:
            self._with_keys += 1
        if message.reconsume_times > 0:
            self._retried += 1
        bucket = _bucket(body)
        self.sizes[bucket] = self.sizes.get(bucket, 0) + 1
        if self.least is None or body < self.least:
            self.least = body
        if self.most is None or body > self.most:
            self.most = body

    def _ungroup(self) -> None:
        """Add the counts of messages with equal values to the table of each property."""
        for group, cell in self._groups.items():
            _add(self.total, *cell)
            for table, value in zip(self._singles, group, strict=True):
                _add(_cell(table, value), *cell)
        self._groups.clear()

    def packed(self) -> bytes:
        """All counts as bytes, for :meth:`merge` in another process of the call."""
        self._ungroup()
        facts = (self.tables, self.total, self._facts, self.sizes, self.least, self.most)
        return marshal.dumps(facts)

    def merge(self, packed: bytes) -> None:
        """Add the counts of another counter."""
        tables, total, facts, sizes, least, most = marshal.loads(packed)
        if total[0]:
            _add(self.total, *total)
        for name, table in tables.items():
            mine = self.tables[name]
            for value, cell in table.items():
                if value not in mine and len(mine) < _MOST_VALUES:
                    mine[value] = cell
                else:
                    _add(_cell(mine, value), *cell)
        self._compressed += facts[0]
        self._with_keys += facts[1]
        self._retried += facts[2]
        for bucket, count in sizes.items():
            self.sizes[bucket] = self.sizes.get(bucket, 0) + count
        known = [size for size in (self.least, least) if size is not None]
        self.least = min(known, default=None)
        known = [size for size in (self.most, most) if size is not None]
        self.most = max(known, default=None)

    def rows(self, name: str) -> Iterator[StatsRow]:
        """The table of a property, the most frequent first."""
        self._ungroup()
        for value, cell in _by_count(self.tables[name]):
            yield StatsRow(value, cell[0], self._share(cell), *cell[1:])

    def time_rows(self, name: str) -> Iterator[TimeStatsRow]:
        """The table of time spans, in order, without empty spans; OTHERS are of no single span."""
        self._ungroup()
        cells = dict(self.tables[name])
        others = cells.pop(OTHERS, None)
        for start, cell in sorted(cells.items()):
            rate = round(cell[0] * 1000 / length_of(name, start, self._zone), 3)
            yield TimeStatsRow(start, cell[0], self._share(cell), cell[1], cell[2], rate)
        if others is not None:
            yield TimeStatsRow(None, others[0], self._share(others), others[1], others[2], None)

    def time_value_rows(self, name: str) -> Iterator[TimeValueStatsRow]:
        """The table of a pair: spans in order, in each the most frequent value first."""
        self._ungroup()
        cells = [(self._parts(key), cell) for key, cell in self.tables[name].items()]
        order = lambda one: (one[0][0] is None, one[0][0], -one[1][0], str(one[0][1]))  # noqa: E731
        for (start, value), cell in sorted(cells, key=order):
            yield TimeValueStatsRow(start, value, cell[0], self._share(cell), cell[1], cell[2])

    @staticmethod
    def _parts(key: Any) -> tuple[int | None, Any]:
        """The start and the value of a pair; OTHERS are of no single span."""
        return (None, OTHERS) if key == OTHERS else key

    def summary(self, damaged: int) -> MessageStats:
        """One row for all messages."""
        self._ungroup()
        count, size, body, first, last = self.total
        hours = (last - first) / SPANS["hour"] if count else 0
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
            *self._facts,
            self._top("topic"),
            self._top("tag"),
            self._top("key"),
            self._top("host"),
            damaged,
        )

    @property
    def _facts(self) -> tuple[int, int, int]:
        """Numbers of compressed messages, messages with keys, and retries."""
        return self._compressed, self._with_keys, self._retried

    def _share(self, cell: _Cell) -> float:
        return round(cell[0] / self.total[0], 4)

    def _percentile(self, part: float) -> int | None:
        """The largest size in the bucket, limited to the largest size seen."""
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


def _count(cell: _Cell, size: int, body: int, time: int) -> None:
    """Add one message to a cell."""
    if not cell[0] or time < cell[3]:
        cell[3] = time
    if not cell[0] or time > cell[4]:
        cell[4] = time
    cell[0] += 1
    cell[1] += size
    cell[2] += body


def _add(cell: _Cell, count: int, size: int, body: int, first: int, last: int) -> None:
    cell[3] = min(cell[3], first) if cell[0] else first
    cell[4] = max(cell[4], last) if cell[0] else last
    cell[0] += count
    cell[1] += size
    cell[2] += body


@lru_cache(4096)
def _bucket(size: int) -> int:
    """The bucket of a size: eight per power of two, one per size below 16."""
    if size < 16:
        return size
    shift = size.bit_length() - 4
    return (shift << 3) + (size >> shift)


def _largest_in(bucket: int) -> int:
    if bucket < 16:
        return bucket
    shift = (bucket >> 3) - 1
    return ((bucket - (shift << 3) + 1) << shift) - 1
