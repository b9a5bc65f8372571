"""The position of delayed delivery: what is left of delayOffset.json, and which messages arrived.

A level is delivered in the order of its queue, so an arrived message proves that all before it
arrived. It has arrived if its target queue holds it: the same unique id and attempt, stored after
the waiting copy, and not before it was due. What nothing proves (no id, several copies, sent before
its time) counts as not delivered. So the bound is never beyond what was delivered: messages may
come again, and none is left out.
"""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from storage.configs.config_file import BAK_SUFFIX, JsonObject
from storage.configs.delay_offsets import DELAY_OFFSET_FILE, decode_delay_offsets
from storage.configs.early_deliveries import EarlyDeliveries
from storage.errors import CorruptFileError, StoreVersionError
from storage.files.checksum import crc_of
from storage.format.message import PROPERTY_REAL_TOPIC, SCHEDULE_TOPIC
from storage.format.names import CONFIG

from .configs import Evidence, RecoveredSetting, RecoveredTable, SalvagedFile, is_lost, remains_of

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_PROVEN: Final = 64
"""So many messages right before the bound must have arrived, too."""


def salvage_delays(view: StoreView) -> SalvagedFile | None:
    """Rebuild delayOffset.json; None if it is undamaged, or nothing was delivered.

    Levels that are left out begin at the start, as in a broker. In a readable file only levels
    whose offset is past waiting messages are changed.
    """
    path = view.root / CONFIG / DELAY_OFFSET_FILE
    crc = crc_of(path)  # before it is read: what is written later is another file
    left = is_lost(path, decode_delay_offsets)
    if left is None:
        return _set_back(view, remains_of(path), crc)
    bak = remains_of(path.with_name(path.name + BAK_SUFFIX))
    rows: dict[int, RecoveredSetting] = {}
    for remains, source, name in (
        (bak, Evidence.BAK, path.name + BAK_SUFFIX),
        (left, Evidence.FILE, path.name),
    ):
        for level, offset in _levels(remains).items():
            if level not in rows or rows[level].value < offset:
                rows[level] = _row(level, offset, source, f"{CONFIG}/{name}")
    ended = _ended(view)
    for topic, queue_id in view.queues():
        if topic != SCHEDULE_TOPIC:
            continue
        level = queue_id + 1
        low, high = view.queue_bounds(topic, queue_id)
        known = max(low, rows[level].value if level in rows else low)
        arrived = _Arrivals(view, queue_id, ended).after(known, high)
        if arrived is not None:
            offset, message = arrived
            rows[level] = _row(level, offset, Evidence.DELIVERED, message.offset_msg_id)
    if not rows:
        return None
    document: JsonObject = {**bak.document, **left.document}
    document["offsetTable"] = {level: rows[level].value for level in sorted(rows)}
    return SalvagedFile(path, left.state, document, [rows[level] for level in sorted(rows)], crc)


def passed_over(view: StoreView, level: int, offset: int) -> int:
    """How many messages of a level wait although its progress, ``offset``, lies past all of them: a
    broker sets it to the queue's end, and they are never delivered."""
    row = _earlier(view, level, offset)
    if row is None:
        return 0
    first: int = row.value
    return view.queue_bounds(SCHEDULE_TOPIC, level - 1)[1] - first


def _earlier(view: StoreView, level: int, offset: int) -> RecoveredSetting | None:
    """The new row of a level whose progress is ``offset``; None if that is not past the end of its
    queue, or no message waits there."""
    low, high = view.queue_bounds(SCHEDULE_TOPIC, level - 1)
    if offset <= high or low == high:
        return None
    arrived = _Arrivals(view, level - 1, _ended(view)).after(low, high)
    if arrived is None:
        return _row(level, low, Evidence.QUEUES, f"nothing that waits from {low} on has arrived")
    place, message = arrived
    return None if place == high else _row(level, place, Evidence.DELIVERED, message.offset_msg_id)


def _set_back(view: StoreView, whole: RecoveredTable, crc: int | None) -> SalvagedFile | None:
    levels = _levels(whole)
    found = ((level, _earlier(view, level, offset)) for level, offset in levels.items())
    rows = {level: row for level, row in found if row is not None}
    if not rows:
        return None
    table = {**levels, **{level: row.value for level, row in rows.items()}}
    document: JsonObject = {**whole.document, "offsetTable": dict(sorted(table.items()))}
    path = view.root / CONFIG / DELAY_OFFSET_FILE
    return SalvagedFile(path, whole.state, document, [rows[level] for level in sorted(rows)], crc)


def _row(level: int, offset: int, source: Evidence, evidence: str) -> RecoveredSetting:
    return RecoveredSetting(DELAY_OFFSET_FILE, str(level), offset, source, evidence)


def _levels(remains: RecoveredTable) -> dict[int, int]:
    with suppress(ValueError, TypeError, OverflowError):
        levels = decode_delay_offsets(remains.document)
        return {level: offset for level, offset in levels.items() if level > 0 and offset >= 0}
    return {}


def _ended(view: StoreView) -> Container[int] | None:
    """Log offsets of messages that were sent before their time; None if that is unknown."""
    try:
        places = EarlyDeliveries(view.root).all()
    except (CorruptFileError, StoreVersionError):
        return None
    return {commitlog_offset for queue in places.values() for _, commitlog_offset in queue}


class _Arrivals:
    """Which messages of a level have arrived. Checks some of them, not all."""

    def __init__(self, view: StoreView, queue_id: int, ended: Container[int] | None) -> None:
        self._view = view
        self._queue_id = queue_id
        self._ended = ended
        self._known: dict[int, MessageExt | None] = {}

    def after(self, low: int, high: int) -> tuple[int, MessageExt] | None:
        """The offset after the last message that has arrived, and that message's arrival; None if
        none from ``low`` on has."""
        first, end = low, high
        while first < end:
            middle = (first + end) // 2
            if self._arrival(middle) is None:
                end = middle
            else:
                first = middle + 1
        bound = first
        at = bound
        while at > max(low, bound - _PROVEN):
            at -= 1
            if self._arrival(at) is None:
                bound = at
        last = self._arrival(bound - 1) if bound > low else None
        return None if last is None else (bound, last)

    def _arrival(self, offset: int) -> MessageExt | None:
        if offset not in self._known:
            self._known[offset] = self._look(offset)
        return self._known[offset]

    def _look(self, offset: int) -> MessageExt | None:
        view = self._view
        unit = view.unit(SCHEDULE_TOPIC, self._queue_id, offset)
        waiting = unit and view.message_of_unit(SCHEDULE_TOPIC, self._queue_id, offset, unit)
        if not unit or not waiting or self._ended is None:
            return None
        if waiting.commitlog_offset in self._ended:
            return None
        msg_id, target = waiting.msg_id, waiting.get_property(PROPERTY_REAL_TOPIC)
        if not target or msg_id == waiting.offset_msg_id:
            return None
        waited = [m for m in self._same(SCHEDULE_TOPIC, waiting) if m.topic == SCHEDULE_TOPIC]
        there = [
            message
            for message in self._same(target, waiting)
            if message.commitlog_offset > waiting.commitlog_offset
            and message.store_timestamp >= unit[2]
        ]
        return there[0] if len(waited) == 1 and there else None

    def _same(self, topic: str, waiting: MessageExt) -> list[MessageExt]:
        return [
            message
            for message in self._view.find_unique(topic, waiting.msg_id)
            if message.msg_id == waiting.msg_id
            and message.reconsume_times == waiting.reconsume_times
            and message.get_property(PROPERTY_REAL_TOPIC)
            == waiting.get_property(PROPERTY_REAL_TOPIC)
        ]
