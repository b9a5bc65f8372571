"""Units of many records at once, and the queues that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from storage.files.read_files import ReadMap
from storage.format.delay import UNKNOWN_LEVEL_DELAY_MS, capped_level, delay_ms
from storage.format.sys_flag import MessageSysFlag
from storage.model import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_MULTI_QUEUE_OFFSET,
    PROPERTY_TAGS,
    SCHEDULE_TOPIC,
)
from storage.writing.dispatch import read_request

from .columns import QueueNames, Run
from .property_columns import properties_of
from .windows import Longs

MAX_QUEUE_OFFSET: Final = 1 << 56
"""No queue has so many messages: larger queue offsets are damage."""


class UnitColumns(NamedTuple):
    """Units; item i of each column is of the same one. Times are ms."""

    queue: Longs
    queue_offset: Longs
    offset: Longs
    size: Longs
    tags_code: Longs
    store_timestamp: Longs

    def rows(self, which: Longs) -> UnitColumns:
        """Some of them."""
        return UnitColumns(*(column[which] for column in self))


class DelayTimes:
    """How long messages of each delay level wait, in ms."""

    def __init__(self, levels_ms: tuple[int, ...], seen_ms: Mapping[int, int]) -> None:
        """``levels_ms`` is the broker's table; what was seen of a level counts more."""
        self._levels = levels_ms
        self._seen = seen_ms
        self._known: dict[bytes, int | None] = {}

    def of(self, text: bytes) -> int | None:
        """The delay by a DELAY property; None if it means no level."""
        if text not in self._known:
            level = int(text) if text.isdigit() else 0
            self._known[text] = self._delay(level) if level > 0 else None
        return self._known[text]

    def _delay(self, level: int) -> int:
        if level in self._seen:
            return self._seen[level]
        if not self._levels:
            return UNKNOWN_LEVEL_DELAY_MS
        return delay_ms(capped_level(level, self._levels), self._levels)


def units_of(
    run: Run, file: ReadMap, file_from_offset: int, names: QueueNames, delays: DelayTimes
) -> UnitColumns:
    """The units that records get, those of light queues behind the others."""
    codes = np.zeros(len(run), np.int64)
    light: list[int] = []
    delayed = np.array([topic == SCHEDULE_TOPIC for topic, _ in names.keys], np.bool_)[run.queue]
    for part in properties_of(file.view, run.properties_at, run.properties_length):
        tags = part.find(PROPERTY_TAGS)
        codes[tags.rows] = tags.hashes()[0].view(np.int32)
        light += part.find(PROPERTY_INNER_MULTI_QUEUE_OFFSET).rows.tolist()
        if delayed.any():
            levels = part.find(PROPERTY_DELAY_TIME_LEVEL)
            levels = levels.only(delayed[levels.rows])
            for row, text in zip(levels.rows.tolist(), levels.texts(), strict=True):
                delay = delays.of(text)
                if delay is not None:
                    codes[row] = run.store_timestamp[row] + delay
    gets_unit = run.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE == 0
    gets_unit &= names.possible()[run.queue]
    gets_unit &= (run.queue_offset >= 0) & (run.queue_offset < MAX_QUEUE_OFFSET)
    units = UnitColumns(
        run.queue,
        run.queue_offset,
        run.place + file_from_offset,
        run.size,
        codes,
        run.store_timestamp,
    )
    if not gets_unit.all():
        units = units.rows(np.flatnonzero(gets_unit))
    if not light:
        return units
    more = _light_units(run, file, file_from_offset, names, codes, sorted(light))
    return UnitColumns(*(np.concatenate(pair) for pair in zip(units, more, strict=True)))


def _light_units(
    run: Run,
    file: ReadMap,
    file_from_offset: int,
    names: QueueNames,
    codes: Longs,
    light: list[int],
) -> UnitColumns:
    found: list[tuple[int, ...]] = []
    for row in light:
        place, size = int(run.place[row]), int(run.size[row])
        request = read_request(file.view, place, size, ())
        for topic, queue_id, queue_offset in request.units[1:]:
            if queue_id >= 0 and queue_offset < MAX_QUEUE_OFFSET:
                number = names.number_of(topic, queue_id)
                where = place + file_from_offset
                time = int(run.store_timestamp[row])
                found.append((number, queue_offset, where, size, int(codes[row]), time))
    columns = np.array(found, np.int64).reshape(len(found), 6)
    return UnitColumns(*columns.T)
