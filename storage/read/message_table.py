"""Messages of queues as columns: the fields that a caller names, and no others.

A table is filled from units, by compiled code in one pass over the mapped log. A record that the
pass does not take (of a light queue, with text that is no UTF-8, a damaged one) goes through the
checks of a single read, and is added as a message. Both forms fill the same buffers with the same
bytes.

The layout is Arrow's, without its bitmaps of nulls. Numbers lie one after the other in the order of
bytes of the processor. Texts are an int32 end each, after a first 0, and their bytes; lists have
such ends, too. The memory of bodies may be longer than what it holds. Tags are never empty: no
bytes mean that a message has none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from storage import native
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.host import unpack_host
from storage.format.sys_flag import MessageSysFlag

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap
    from storage.format.message import MessageExt
    from storage.log.record_reader import QueueKey, RecordReader
    from storage.queue.reader import QueueReader

_INT: Final = Struct("=i")
_LONG: Final = Struct("=q")
_PLACE: Final = Struct(">q")
_MOST_SINGLY: Final = 128
"""Messages that are read singly before the pass is tried again, where many of them are odd."""
MOST_BYTES: Final = 1 << 30
"""Bytes for which a table can be asked: ends are int32, and one message may come on top."""


Adder: TypeAlias = "Callable[[MessageExt, int, int], None]"
"""Takes a message, its offset in the queue that is read, and its row."""


class Kind(Enum):
    """How the values of a field lie in its buffers."""

    INT = auto()
    """int32"""
    LONG = auto()
    """int64"""
    TEXT = auto()
    """Ends, and the bytes: UTF-8, or a body."""
    TEXTS = auto()
    """Ends of lists, counted in texts; then as TEXT."""
    PAIRS = auto()
    """Ends of lists, counted in pairs; then names and values as TEXT."""
    BODY = auto()
    """As TEXT; then the rows whose body is compressed, an int32 each."""


_PARTS: Final = {
    Kind.INT: ("",),
    Kind.LONG: ("",),
    Kind.TEXT: ("_ends", ""),
    Kind.TEXTS: ("_ends", "_text_ends", "_text"),
    Kind.PAIRS: ("_ends", "_name_ends", "_name", "_value_ends", "_value"),
    Kind.BODY: ("_ends", "", "_packed"),
}
"""The buffers of a field: what follows its name."""

FIELDS: Final = {
    "queue_offset": Kind.LONG,
    "commitlog_offset": Kind.LONG,
    "store_size": Kind.INT,
    "flag": Kind.INT,
    "sys_flag": Kind.INT,
    "reconsume_times": Kind.INT,
    "body_crc": Kind.INT,
    "prepared_transaction_offset": Kind.LONG,
    "store_timestamp": Kind.LONG,
    "born_timestamp": Kind.LONG,
    "record_queue_id": Kind.INT,
    "record_queue_offset": Kind.LONG,
    "record_topic": Kind.TEXT,
    "born_host": Kind.TEXT,
    "store_host": Kind.TEXT,
    "offset_msg_id": Kind.TEXT,
    "msg_id": Kind.TEXT,
    "tags": Kind.TEXT,
    "keys": Kind.TEXTS,
    "properties": Kind.PAIRS,
    "stored_body": Kind.BODY,
}
"""The fields, named as those of MessageExt. ``queue_offset`` is that of the unit, from which that
of the record differs in light queues."""

BUFFERS: Final = tuple(f"{name}{part}" for name, kind in FIELDS.items() for part in _PARTS[kind])
"""All buffers by name, in the order in which compiled code knows them."""
_OF_PROPERTIES: Final = frozenset({"tags", "keys", "properties", "msg_id"})
_HOST_BYTES: Final = 64
_ID_BYTES: Final = 56
_TOPIC_BYTES: Final = 255
_MOST_OF_TEXT: Final = {
    "born_host": _HOST_BYTES,
    "store_host": _HOST_BYTES,
    "record_topic": _TOPIC_BYTES,
    "msg_id": _ID_BYTES,
    "offset_msg_id": _ID_BYTES,
}


class MessageTable:
    """Rows of messages. Not thread-safe.

    It takes up to ``most_rows`` messages and about ``most_bytes`` bytes, at least one message.
    """

    def __init__(
        self,
        fields: Collection[str],
        most_rows: int,
        most_bytes: int,
        body_room: bytearray | None = None,
    ) -> None:
        """``fields`` are some of FIELDS. ``body_room`` is memory for the bodies, and what it holds
        is lost: that of a table which is no longer used. Raises ValueError for more than
        MOST_BYTES."""
        if most_bytes > MOST_BYTES:
            raise ValueError(f"a table has at most {MOST_BYTES} bytes, not {most_bytes}")
        self.fields: Final = frozenset(fields)
        self.most_rows: Final = most_rows
        self.most_bytes: Final = most_bytes
        self.rows = 0
        self.size = 0
        """Bytes of the rows; texts that come from properties are counted as these are stored."""
        self.is_full = False
        """Whether it took no more messages when it was filled last."""
        self.row_bytes: Final = sum(8 + _MOST_OF_TEXT.get(name, 0) for name in self.fields)
        self.checks_bodies: Final = "stored_body" in self.fields
        self.reads_properties: Final = not _OF_PROPERTIES.isdisjoint(self.fields)
        self._buffers = {
            f"{name}{part}": bytearray(_INT.size if part.endswith("_ends") else 0)
            for name, kind in FIELDS.items()
            if name in self.fields
            for part in _PARTS[kind]
        }
        if body_room is not None and self.checks_bodies:
            self._buffers["stored_body"] = body_room
        self.buffers: Final = tuple(map(self._buffers.get, BUFFERS))
        """Those of BUFFERS, None for fields that are not wanted; that of bodies may be longer than
        what it holds."""
        self._adders = [
            _adder(name, kind, [self._buffers[f"{name}{part}"] for part in _PARTS[kind]])
            for name, kind in FIELDS.items()
            if name in self.fields
        ]

    def buffer(self, name: str) -> bytearray:
        """One of BUFFERS, of a field that is wanted. Keep it only when the table is complete."""
        buffer = self._buffers[name]
        if name == "stored_body":
            del buffer[
                _end_of(self._buffers["stored_body_ends"]) :
            ]  # its memory stays, if not long
        return buffer

    @property
    def body_room(self) -> bytearray | None:
        """The memory of the bodies, for a later table; None if bodies are not wanted."""
        return self._buffers.get("stored_body")

    def has_room(self, body_size: int, properties_size: int) -> bool:
        """Whether it takes a message of so many bytes; notes it if not."""
        size = self._size_of(body_size, properties_size)
        if self.rows < self.most_rows and (not self.rows or self.size + size <= self.most_bytes):
            return True
        self.is_full = True
        return False

    def add(self, message: MessageExt, queue_offset: int) -> None:
        """Add a message at an offset of the queue that is read: the form without compiled code."""
        for add in self._adders:
            add(message, queue_offset, self.rows)
        self.size += self._size_of(len(message.stored_body), len(message.property_bytes))
        self.rows += 1

    def add_empty(self, queue_offset: int) -> None:
        """Add a row of zeros and empty texts: for a message that cannot be read."""
        for name in self.fields:
            kind = FIELDS[name]
            numbers = self._buffers[f"{name}{_PARTS[kind][0]}"]
            if kind is Kind.INT:
                numbers += _INT.pack(0)
            elif kind is Kind.LONG:
                numbers += _LONG.pack(queue_offset if name == "queue_offset" else 0)
            else:  # it ends where the one before ends
                numbers += numbers[-_INT.size :]
        self.size += self.row_bytes
        self.rows += 1

    def _size_of(self, body_size: int, properties_size: int) -> int:
        size = self.row_bytes + body_size * self.checks_bodies
        return size + properties_size * self.reads_properties


def _adder(name: str, kind: Kind, parts: Sequence[bytearray]) -> Adder:
    """How a value of a message is added to the buffers of a field. It holds these only: a cycle
    with the table would keep them until Python looks for cycles."""
    own = name.removeprefix("record_")
    if name == "queue_offset":
        return lambda _, offset, row: parts[0].extend(_LONG.pack(offset))
    if kind in (Kind.INT, Kind.LONG):
        pack = (_INT if kind is Kind.INT else _LONG).pack
        return lambda message, _, row: parts[0].extend(pack(getattr(message, own)))
    if kind is Kind.TEXTS:
        return lambda message, _, row: _add_list(parts, [map(_bytes, getattr(message, name))])
    if kind is Kind.PAIRS:
        return lambda message, _, row: _add_list(
            parts, [map(_bytes, message.properties), map(_bytes, message.properties.values())]
        )
    if kind is Kind.BODY:
        return lambda message, _, row: _add_body(parts, message, row)
    return lambda message, _, row: _add_text(parts, _bytes(getattr(message, own) or ""))


def _add_body(parts: Sequence[bytearray], message: MessageExt, row: int) -> None:
    ends, data = parts[:2]
    data[_end_of(ends) :] = message.stored_body
    ends += _INT.pack(len(data))
    if message.sys_flag & MessageSysFlag.COMPRESSED_FLAG and message.stored_body:
        parts[2].extend(_INT.pack(row))


def _end_of(ends: bytearray) -> int:
    end: int = _INT.unpack_from(ends, len(ends) - _INT.size)[0]
    return end


def _bytes(text: str) -> bytes:
    """UTF-8; the bytes of a topic's name that are none become U+FFFD, as in properties."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()


def _add_text(parts: Sequence[bytearray], text: bytes) -> None:
    ends, data = parts
    data += text
    ends += _INT.pack(len(data))


def _add_list(parts: Sequence[bytearray], columns: Sequence[map[bytes]]) -> None:
    ends, *texts = parts
    for number, column in enumerate(columns):
        for text in column:
            _add_text(texts[2 * number : 2 * number + 2], text)
    ends += _INT.pack(len(texts[0]) // _INT.size - 1)


class Filled(NamedTuple):
    """How far a queue was read."""

    next_offset: int
    """Of the first message that was not taken."""
    is_unreadable: bool
    """Whether that one cannot be read: its unit or its file is missing, or it is damaged."""


class TableReader:
    """Fills tables from queues of one store. Thread-safe, as long as each table has one thread."""

    def __init__(self, records: RecordReader) -> None:
        self._records = records
        self._file_size = records.log.file_size

    def fill(
        self,
        table: MessageTable,
        queue: QueueReader,
        offset: int,
        end: int,
        times: tuple[int, int] | None,
    ) -> Filled:
        """Add the messages [offset, end) of a queue, which lie within its bounds; with ``times``
        only those stored in [begin, end) (ms), or whose time cannot be read.

        Ends early where the table is full or a message cannot be read. Bodies are checked only if
        the table has them.
        """
        table.is_full = False
        while offset < end and not table.is_full:
            units = queue.unit_view(offset, end - offset)
            if units is None:
                return Filled(offset, True)
            taken, unreadable = self._fill(table, queue.key, offset, units, times)
            offset += taken
            if unreadable:
                return Filled(offset, True)
        return Filled(offset, False)

    def _fill(
        self,
        table: MessageTable,
        key: QueueKey,
        offset: int,
        units: memoryview,
        times: tuple[int, int] | None,
    ) -> tuple[int, bool]:
        """How many units of a queue were taken, and whether the next one cannot be read."""
        taken, count, singly = 0, len(units) // CQ_STORE_UNIT_SIZE, 1
        while taken < count:
            rest = units[taken * CQ_STORE_UNIT_SIZE :]
            found = self._pass(table, key, offset + taken, rest, times)
            taken += found
            singly = 1 if found > singly else min(2 * singly, _MOST_SINGLY)
            if table.is_full:
                break
            rest = units[taken * CQ_STORE_UNIT_SIZE : (taken + singly) * CQ_STORE_UNIT_SIZE]
            for place, size, _ in CQ_STORE_UNIT.iter_unpack(rest):
                if not self._add(table, key, offset + taken, place, size, times):
                    return taken, not table.is_full
                taken += 1
        return taken, False

    def _pass(
        self,
        table: MessageTable,
        key: QueueKey,
        offset: int,
        units: memoryview,
        times: tuple[int, int] | None,
    ) -> int:
        """Add usual messages as long as they lie in one file; gives their number."""
        (place,) = _PLACE.unpack_from(units)
        first = place - place % self._file_size
        file = self._records.log.at(first)
        if file is None:
            return 0
        return self.take_usual(file, first, table, key, offset, units, times)

    def take_usual(
        self,
        file: ReadMap,
        first: int,
        table: MessageTable,
        key: QueueKey,
        offset: int,
        units: memoryview,
        times: tuple[int, int] | None = None,
    ) -> int:
        """Add messages as far as their records are usual and lie in a file of the log that begins
        at ``first``; gives how many units were taken."""
        begin, end = (0, -1) if times is None else (times[0], max(times))
        taken, table.rows, table.size, table.is_full = fill_table(
            units,
            file.view,
            first,
            key.topic_name,
            key.queue_id,
            offset,
            begin,
            end,
            table.buffers,
            table.rows,
            table.most_rows,
            table.size,
            table.most_bytes,
            table.row_bytes,
            unpack_host,
        )
        return taken

    def _add(
        self,
        table: MessageTable,
        key: QueueKey,
        offset: int,
        place: int,
        size: int,
        times: tuple[int, int] | None,
    ) -> bool:
        """Take one message by the checks of a single read; False if it is not taken."""
        records = self._records
        if times is not None:
            stored = records.store_timestamp(place, size)
            if stored is not None and stored >= 0 and not times[0] <= stored < times[1]:
                return True
        message = records.read(place, size, key, offset, check_body=table.checks_bodies)
        if message is None:
            return False
        if not table.has_room(len(message.stored_body), len(message.property_bytes)):
            return False
        table.add(message, offset)
        return True


def _fill_table(*given: Any) -> tuple[int, int, int, bool]:
    """The pass that takes nothing: each message is read singly."""
    return 0, given[9], given[11], False


fill_table: Final = native.form("fill_table", _fill_table)
