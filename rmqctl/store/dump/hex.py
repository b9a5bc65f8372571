"""Bytes with the names of their fields (FORMAT.md)."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.host import unpack_host
from storage.format.index_file import INDEX_ENTRY_SIZE, entry_position, slot_position
from storage.format.layout import BLANK_SIZE, MESSAGE_MAGIC_V2
from storage.format.names import parse_file_name

from .files import DumpFile, FileKind, config_of
from .holes import Holes
from .log import record_rows
from .queue import ext_unit_rows, unit_rows
from .rows import HexDump, RecordDump

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap

_LINE: Final = 16
_RUN: Final = 64
"""Number of consecutive zeros that are shown as one line."""
_NUMBER, _TIME, _HEX, _HOST, _TEXT = range(5)


class _Field(NamedTuple):
    name: str
    size: int
    kind: int = _NUMBER


_UNIT: Final = (_Field("commitLogOffset", 8), _Field("size", 4), _Field("tagsCode", 8))
_EXT: Final = (
    _Field("size", 2),
    _Field("tagsCode", 8),
    _Field("storeTime", 8, _TIME),
    _Field("bitMapBytes", 2),
)
_INDEX_HEAD: Final = (
    _Field("beginTimestamp", 8, _TIME),
    _Field("endTimestamp", 8, _TIME),
    _Field("beginPhyOffset", 8),
    _Field("endPhyOffset", 8),
    _Field("hashSlotCount", 4),
    _Field("indexCount", 4),
)
_ENTRY: Final = (
    _Field("keyHash", 4),
    _Field("commitLogOffset", 8),
    _Field("timeDiff", 4),
    _Field("previous", 4),
)
_CHECKPOINT: Final = (
    _Field("physicMsgTimestamp", 8, _TIME),
    _Field("logicsMsgTimestamp", 8, _TIME),
    _Field("indexMsgTimestamp", 8, _TIME),
    _Field("masterFlushedOffset", 8),
    _Field("confirmPhyOffset", 8),
)
_BLANK: Final = (_Field("totalSize", 4), _Field("magic", 4, _HEX))


class HexDumper:
    """The bytes of one file; ``base`` is the shown position of its first byte. Its ``holes`` are
    not read."""

    def __init__(self, view: memoryview, holes: Holes, base: int = 0) -> None:
        self._view = view
        self._holes = holes
        self._base = base

    def fields(self, at: int, fields: Iterable[_Field]) -> Iterator[HexDump]:
        """Consecutive fields, as far as there are bytes."""
        for name, size, kind in fields:
            data = bytes(self._view[at : at + size])
            if not data:
                return
            value = _value(data, kind) if len(data) == size else "cut short"
            if kind == _TEXT or size > 2 * _LINE:
                yield from self.lines(at, at + len(data), name)
            else:
                yield HexDump(self._base + at, len(data), data.hex(" "), name, value)
            at += size

    def lines(self, at: int, end: int, name: str | None = None) -> Iterator[HexDump]:
        """Bytes without fields, 16 per line; a long run of zeros is one line."""
        while at < end:
            zeros = self._zeros(at, end)
            if zeros >= _RUN:
                yield HexDump(self._base + at, zeros, "00 ...", name, f"{zeros} zeros")
                at += zeros
                continue
            data = bytes(self._view[at : min(end, at + _LINE)])
            yield HexDump(self._base + at, len(data), data.hex(" "), name, _printable(data))
            at += len(data)

    def record(self, at: int, size: int) -> Iterator[HexDump]:
        """A record of the log; bytes outside of its lengths have no name."""
        view, end = self._view, min(at + size, len(self._view))

        def number(where: int, width: int) -> int:
            return int.from_bytes(view[where : where + width], "big", signed=width > 1)

        flags = number(at + 36, 4)
        born, store = (20 if flags & bit else 8 for bit in (0x10, 0x20))
        head = (
            _Field("totalSize", 4),
            _Field("magic", 4, _HEX),
            _Field("bodyCRC", 4, _HEX),
            _Field("queueId", 4),
            _Field("flag", 4),
            _Field("queueOffset", 8),
            _Field("physicalOffset", 8),
            _Field("sysFlag", 4, _HEX),
            _Field("bornTimestamp", 8, _TIME),
            _Field("bornHost", born, _HOST),
            _Field("storeTimestamp", 8, _TIME),
            _Field("storeHost", store, _HOST),
            _Field("reconsumeTimes", 4),
            _Field("preparedTransactionOffset", 8),
            _Field("bodyLen", 4),
        )
        whole = HexDumper(view[:end], self._holes, self._base)
        yield from whole.fields(at, head)
        place = at + sum(field.size for field in head)
        body = number(place - 4, 4)
        wide = 2 if number(at + 4, 4) == MESSAGE_MAGIC_V2 else 1
        rest = [_Field("body", body, _TEXT), _Field("topicLen", wide)]
        topic = number(place + max(0, body), wide)
        rest += [_Field("topic", topic, _TEXT), _Field("propertiesLen", 2)]
        properties = number(place + max(0, body) + wide + max(0, topic), 2)
        rest.append(_Field("properties", properties, _TEXT))
        for field in rest:
            if field.size < 0 or place + field.size > end:
                break
            yield from whole.fields(place, [field] if field.size else [])
            place += field.size
        yield from self.lines(place, end)

    def piece(self, piece: RecordDump, at: int) -> Iterator[HexDump]:
        """A piece of the log that ``rmqctl.store.dump.log`` found."""
        if piece.kind == "BLANK":
            yield from self.fields(at, _BLANK)
            yield from self.lines(at + BLANK_SIZE, at + piece.size)
        elif piece.kind in ("MESSAGE", "DAMAGED"):
            yield from self.record(at, piece.size)
        else:
            yield from self.lines(at, at + piece.size)

    def _zeros(self, at: int, end: int) -> int:
        """Number of zeros at a position, in whole lines."""
        start = at
        while (at := min(end, self._holes.next_data(at))) < end:
            step = min(end - at, 1 << 20)
            block = bytes(self._view[at : at + step])
            kept = len(block) - len(block.lstrip(b"\0"))
            at += kept
            if kept < step:
                break
        count = at - start
        return count if at == end else count - count % _LINE


def hex_rows(file: DumpFile, mapped: "ReadMap") -> Iterator[HexDump]:
    """All bytes of a file, in order, each once; positions are relative to the file.

    Positions of a log file are log positions.
    """
    path, view = file.path, mapped.view
    holes = Holes(path, mapped.length)
    match file.kind:
        case FileKind.LOG:
            first = parse_file_name(path.name) or 0
            dumper = HexDumper(view, holes, first)
            for piece in record_rows(mapped, path):
                yield from dumper.piece(piece, piece.position - first)
        case FileKind.QUEUE:
            yield from _queue(mapped, path, holes)
        case FileKind.EXT:
            yield from _ext(mapped, holes)
        case FileKind.INDEX:
            yield from _index(file, mapped, holes)
        case FileKind.CHECKPOINT:
            dumper = HexDumper(view, holes)
            yield from dumper.fields(0, _CHECKPOINT)
            yield from dumper.lines(sum(field.size for field in _CHECKPOINT), mapped.length)
        case _:
            yield from HexDumper(view, holes).lines(0, mapped.length)


def _queue(mapped: "ReadMap", path: Path, holes: Holes) -> Iterator[HexDump]:
    dumper = HexDumper(mapped.view, holes)
    for row in unit_rows(mapped, path):
        if row.kind == "EMPTY":
            yield from dumper.lines(row.position, row.position + row.units * CQ_STORE_UNIT_SIZE)
            continue
        for number in range(row.units):
            yield from dumper.fields(row.position + number * CQ_STORE_UNIT_SIZE, _UNIT)


def _ext(mapped: "ReadMap", holes: Holes) -> Iterator[HexDump]:
    dumper = HexDumper(mapped.view, holes)
    for row in ext_unit_rows(mapped):
        if row.kind != "UNIT":
            yield from dumper.lines(row.position, mapped.length)
            return
        yield from dumper.fields(row.position, _EXT)
        start = row.position + sum(field.size for field in _EXT)
        yield from dumper.lines(start, row.position + (row.size or 0), "bitMap")


def _index(file: DumpFile, mapped: "ReadMap", holes: Holes) -> Iterator[HexDump]:
    from .index import IndexDump

    head = IndexDump(mapped, file.path, config_of(file)).header
    dumper = HexDumper(mapped.view, holes)
    yield from dumper.fields(0, _INDEX_HEAD)
    slots, at = head.max_hash_slot_num, slot_position(0)
    if slots is None:
        yield from dumper.lines(at, mapped.length)
        return
    yield from dumper.lines(at, entry_position(slots, 0), "slots")
    at = entry_position(slots, 0)
    yield from dumper.lines(at, at + INDEX_ENTRY_SIZE)
    for number in range(1, max(1, head.index_count)):
        at = entry_position(slots, number)
        if at + INDEX_ENTRY_SIZE > mapped.length:
            return
        yield from dumper.fields(at, _ENTRY)
    yield from dumper.lines(at + INDEX_ENTRY_SIZE, mapped.length)


def _value(data: bytes, kind: int) -> str | None:
    number = int.from_bytes(data, "big", signed=len(data) > 1)
    match kind:
        case 0:
            return str(number)
        case 1:
            return _time(number)
        case 2:
            return f"0x{data.hex()}"
        case 3:
            return unpack_host(data)
    return None


def _time(milliseconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return f"{milliseconds} ({moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z)"


def _printable(data: bytes) -> str:
    return "".join(chr(octet) if 32 <= octet < 127 else "." for octet in data)
