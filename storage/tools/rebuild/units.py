"""Units of many records at once, and the queues that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from storage.files.read_files import ReadMap
from storage.format.cq_unit import MAX_QUEUE_OFFSET
from storage.format.delay import UNKNOWN_LEVEL_DELAY_MS, capped_level, delay_ms
from storage.format.dispatch import read_request
from storage.format.java_numbers import parse_digits
from storage.format.message import PROPERTY_DELAY_TIME_LEVEL, SCHEDULE_TOPIC
from storage.format.properties import find_property
from storage.format.sys_flag import MessageSysFlag
from storage.record_batch.arrays import Longs
from storage.record_batch.queue_numbers import QueueNames
from storage.record_batch.record_batch import MARK_DELAY, MARK_LIGHT, RecordBatch


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
        """``levels_ms`` is the broker's table; observed delays take precedence."""
        self._levels = levels_ms
        self._seen = seen_ms
        self._known: dict[str, int | None] = {}

    def of(self, text: str) -> int | None:
        """The delay of a DELAY property; None if it means no level."""
        if text not in self._known:
            level = parse_digits(text) or 0
            self._known[text] = self._delay(level) if level > 0 else None
        return self._known[text]

    def _delay(self, level: int) -> int:
        if level in self._seen:
            return self._seen[level]
        if not self._levels:
            return UNKNOWN_LEVEL_DELAY_MS
        return delay_ms(capped_level(level, self._levels), self._levels)


def units_of(
    block: RecordBatch, file: ReadMap, names: QueueNames, delays: DelayTimes
) -> UnitColumns:
    """The units of records, those of light queues after the others."""
    queue = names.numbers(block.topic, block.queue_id)
    units = UnitColumns(
        queue,
        block.queue_offset,
        block.offset,
        block.size,
        _codes(block, names, delays),
        block.store_timestamp,
    )
    gets_unit = block.sys_flag & MessageSysFlag.TRANSACTION_PREPARED_TYPE == 0
    gets_unit &= names.possible()[queue]
    gets_unit &= (block.queue_offset >= 0) & (block.queue_offset < MAX_QUEUE_OFFSET)
    light = block.marked(MARK_LIGHT)
    more = _lmq_units(block, file, names, units.tags_code, light) if light else None
    if not gets_unit.all():
        units = units.rows(np.flatnonzero(gets_unit))
    if more is None:
        return units
    return UnitColumns(*(np.concatenate(pair) for pair in zip(units, more, strict=True)))


def _codes(block: RecordBatch, names: QueueNames, delays: DelayTimes) -> Longs:
    """Hashes of the tags; for delayed messages the time of delivery."""
    delayed = [
        row
        for row in block.marked(MARK_DELAY)
        if names.topics.names[int(block.topic[row])] == SCHEDULE_TOPIC
    ]
    if not delayed:
        return block.tags_code
    codes = block.tags_code.copy()
    for row in delayed:
        delay = delays.of(find_property(block.texts[row], PROPERTY_DELAY_TIME_LEVEL) or "")
        if delay is not None:
            codes[row] = block.store_timestamp[row] + delay
    return codes


def _lmq_units(
    block: RecordBatch, file: ReadMap, names: QueueNames, codes: Longs, light: list[int]
) -> UnitColumns:
    found: list[tuple[int, ...]] = []
    for row in light:
        place, size = int(block.place[row]), int(block.size[row])
        request = read_request(file.view, place, size, (), first=block.first)
        for topic, queue_id, queue_offset in request.units[1:]:
            if queue_id >= 0 and queue_offset < MAX_QUEUE_OFFSET:
                number = names.number_of(topic, queue_id)
                time = int(block.store_timestamp[row])
                offset = request.commitlog_offset
                found.append((number, queue_offset, offset, size, int(codes[row]), time))
    columns = np.array(found, np.int64).reshape(len(found), 6)
    return UnitColumns(*columns.T)
