"""Planning for bytes of the log that are no whole record.

The unit that points at a damaged record gives its topic, queue, queue offset and length. If its
body is whole, its head is repaired; else a record of zeros takes its place. Where no unit points,
its own head counts if it can be read; other bytes become records without a queue, or the blank
record if they reach to the file's end. So all that follows can be reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from storage.format.check import CheckKind, check_record
from storage.format.dispatch import is_possible_topic, read_request
from storage.format.layout import BLANK_SIZE, HEAD_SIZES
from storage.format.message import (
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_INNER_MULTI_QUEUE_OFFSET,
    SCHEDULE_TOPIC,
)
from storage.format.names import COMMITLOG, file_name
from storage.format.properties import encode_properties
from storage.format.record import RecordError, blank_record, decode_record, read_head
from storage.format.tombstone import LEAST_FILLER, Tombstone, fillers

from .record_header import (
    PROPERTIES_CLEANED,
    PROPERTIES_LOST,
    mended_head,
    sanitized_properties,
)
from .steps import Action, Step
from .unit_lookup import UnitAt, own_first

if TYPE_CHECKING:
    from storage.format.message import MessageExt

_ZEROS = "a Java broker delivers a body of zeros in its place; rmqctl passes over it"


class Region(NamedTuple):
    """Bytes [start, end) of one log file that are no records, and what is known of them."""

    start: int
    end: int
    why: str
    known: dict[int, int]
    """Records in it whose length is known though they are damaged: log offset and length."""
    earlier: int
    """Store time of the record before it (ms, 0 = none)."""
    later: int
    """Store time of the record after it (ms, 0 = none)."""
    ends_file: bool
    """Whether it reaches to the end of a file after which the log goes on."""


class RegionPlanner:
    """Plans regions of one log file; ``data`` are its bytes, ``file_size`` of them or fewer."""

    def __init__(self, first: int, file_size: int, data: memoryview) -> None:
        self._first = first
        self._file_size = file_size
        self._data = data
        self.path = f"{COMMITLOG}/{file_name(first)}"
        self.dropped: set[tuple[str, int]] = set()
        """Queues to rebuild: a unit points to where no record could be put for it, or was made of
        properties that are lost."""

    def steps(self, region: Region, units: list[UnitAt]) -> Iterator[Step]:
        """Give the steps for a region; ``units`` are those that point into it, by log offset."""
        at = region.start
        while at < region.end:
            piece = self._piece_at(at, region, units)
            if piece is not None and self._leaves_room(at + piece[1], region):
                step, length = piece
                yield step
                at += length
                continue
            end = self._next_known(at, region, units)
            if region.ends_file and end == region.end:
                if end - at >= BLANK_SIZE:
                    yield self._blank(at, region)
                return
            while 0 < end - at < LEAST_FILLER and end < region.end:
                end = self._next_known(end, region, units)
            self._drop(units, at, end)
            yield from self._fill(at, end, region)
            at = end

    # -- one piece ----------------------------------------------------------------------------

    def _piece_at(self, at: int, region: Region, units: list[UnitAt]) -> tuple[Step, int] | None:
        """Identity of the record at ``at``, from a unit or the record's own head."""
        here = [
            unit
            for unit in units
            if unit.offset == at and unit.end <= region.end and unit.size >= HEAD_SIZES[0] + 3
        ]
        here = own_first(here)
        for unit in here:
            if (mended := self._mend(unit, region)) is not None:
                return mended, unit.size
        for unit in here:
            others = [other for other in here if other.size == unit.size and other != unit]
            if (replaced := self._replace(unit, region, others)) is not None:
                return replaced, unit.size
        size = region.known.get(at)
        if size is None or at + size > region.end:
            return None
        own = self._own_identity(at, size)
        step = None if own is None else self._replace(own, region)
        return None if step is None else (step, size)

    def _mend(self, unit: UnitAt, region: Region) -> Step | None:
        record = self._bytes(unit.offset, unit.size)
        mended = mended_head(record, unit)
        if mended is None:
            return None
        what = f"{_place(unit)}: its body is whole, its head is mended from its unit"
        cost = ""
        if (clean := sanitized_properties(mended)) is not None:
            what, mended = f"{what}; {PROPERTIES_CLEANED}", clean
        if clean is not None or _contradicts_tags(mended, unit):
            cost = PROPERTIES_LOST
            self.dropped.add((unit.topic, unit.queue_id))
        return Step(
            Action.MEND,
            self.path,
            unit.offset - self._first,
            unit.size,
            region.why,
            what,
            cost,
            old_crc=crc32(record),
            data=mended,
        )

    def _replace(
        self, unit: UnitAt, region: Region, others: list[UnitAt] | None = None
    ) -> Step | None:
        """A record of zeros; ``others`` are light queues that have it, too."""
        message = self._readable(unit)
        wanted = Tombstone(
            unit.topic,
            unit.queue_id,
            unit.queue_offset,
            unit.offset,
            unit.size,
            _time(message, region),
        )
        if message is not None:
            wanted = wanted._replace(
                properties=message.property_bytes,
                sys_flag=message.sys_flag,
                born_timestamp=message.born_timestamp,
                prepared_transaction_offset=message.prepared_transaction_offset,
            )
        elif others:
            wanted = wanted._replace(properties=dispatched_to(others))
            if not wanted.keeps_properties():
                self.dropped.update((other.topic, other.queue_id) for other in others)
        if not wanted.fits():
            return None
        return Step(
            Action.REPLACE,
            self.path,
            unit.offset - self._first,
            unit.size,
            region.why,
            f"{_place(unit)}: a record of zeros takes its place",
            f"this message cannot be read any more; {_ZEROS}",
            1,
            crc32(self._bytes(unit.offset, unit.size)),
            (wanted,),
        )

    def _own_identity(self, at: int, size: int) -> UnitAt | None:
        try:
            message = decode_record(self._data, at - self._first, size)
        except RecordError:
            return None
        sound = (
            message.commitlog_offset == at
            and message.queue_id >= 0
            and message.queue_offset >= 0
            and is_possible_topic(message.topic)
            and not message.sys_flag & 0x4
        )
        if not sound:
            return None
        return UnitAt(at, size, message.topic, message.queue_id, message.queue_offset, False)

    def _readable(self, unit: UnitAt) -> MessageExt | None:
        """The damaged record's fields, if all that can be compared agrees with the unit."""
        try:
            message = decode_record(self._data, unit.offset - self._first, unit.size)
        except RecordError:
            return None
        own = (message.topic, message.queue_id, message.queue_offset, message.commitlog_offset)
        if own != (unit.topic, unit.queue_id, unit.queue_offset, unit.offset):
            return None
        text = message.property_bytes
        return None if b"\0" in text or not _is_utf8(text) else message

    # -- unknown bytes --------------------------------------------------------------------

    def _next_known(self, at: int, region: Region, units: list[UnitAt]) -> int:
        """The next known beginning of a record after ``at``."""
        places = [unit.offset for unit in units if unit.offset > at]
        places += [start for start in region.known if start > at]
        return min([*places, region.end])

    def _leaves_room(self, end: int, region: Region) -> bool:
        """Whether the bytes left after a piece can be filled."""
        left = region.end - end
        return left == 0 or left >= (BLANK_SIZE if region.ends_file else LEAST_FILLER)

    def _fill(self, at: int, end: int, region: Region) -> Iterator[Step]:
        if end - at < LEAST_FILLER:
            yield Step(
                Action.NONE,
                self.path,
                at - self._first,
                end - at,
                region.why,
                f"{end - at} bytes are too few for a record; restore the file from a copy",
            )
            return
        for filler in fillers(at, end, _time(None, region)):
            place = filler.commitlog_offset
            yield Step(
                Action.FILL,
                self.path,
                place - self._first,
                filler.size,
                region.why,
                f"{filler.size} bytes that no unit points at: a record without a queue",
                "messages that were here are lost",
                None,
                crc32(self._bytes(place, filler.size)),
                (filler,),
            )

    def _blank(self, at: int, region: Region) -> Step:
        left = self._first + self._file_size - at
        lost = any(self._bytes(at + BLANK_SIZE, left - BLANK_SIZE))
        return Step(
            Action.BLANK,
            self.path,
            at - self._first,
            BLANK_SIZE,
            region.why,
            f"the blank record that ends the file, over {left} bytes that are no records",
            "messages that were here are lost" if lost else "",
            None if lost else 0,
            crc32(self._bytes(at, BLANK_SIZE)),
            data=blank_record(left),
        )

    def _drop(self, units: list[UnitAt], start: int, end: int) -> None:
        self.dropped.update(
            (unit.topic, unit.queue_id) for unit in units if start <= unit.offset < end
        )

    def _bytes(self, at: int, length: int) -> bytes:
        """Bytes as they are; past the end of a short file zeros, as after it is lengthened."""
        position = at - self._first
        return bytes(self._data[position : position + length]).ljust(length, b"\0")


def record_time(data: memoryview, position: int) -> int:
    """Store time of the whole record at a position, 0 if there is none."""
    if position < 0 or check_record(data, position, len(data)).kind is not CheckKind.MESSAGE:
        return 0
    return max(0, read_head(data, position).store_timestamp)


def _time(message: MessageExt | None, region: Region) -> int:
    """A store time that keeps them ascending: the record's own, else that of its neighbour."""
    if message is not None:
        own = message.store_timestamp
        if region.earlier <= own and (not region.later or own <= region.later):
            return own
    return region.earlier or region.later


def dispatched_to(queues: list[UnitAt]) -> bytes:
    """The properties that name a record's light queues, and its offsets in them."""
    names = ",".join(queue.topic for queue in queues)
    offsets = ",".join(str(queue.queue_offset) for queue in queues)
    pairs = {PROPERTY_INNER_MULTI_DISPATCH: names, PROPERTY_INNER_MULTI_QUEUE_OFFSET: offsets}
    return encode_properties(pairs)


def _place(unit: UnitAt) -> str:
    return f"{unit.topic} queue {unit.queue_id} offset {unit.queue_offset}"


def _contradicts_tags(record: bytes, unit: UnitAt) -> bool:
    """Whether the unit was made of other tags than the record has: its properties are damaged."""
    if unit.tags_code is None or unit.topic == SCHEDULE_TOPIC:  # there the code is a time
        return False
    return read_request(record, 0, len(record), (), first=0).tags_code != unit.tags_code


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
