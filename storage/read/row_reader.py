"""Reading messages of a queue as a table whose rows are messages where one is asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final

from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.log.record_reader import RecordReader

from .message_rows import MessageRows, TableOfQueue
from .message_table import MessageTable, TableReader

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap
    from storage.format.message import MessageExt
    from storage.log.record_reader import QueueKey

_BODY: Final = "stored_body"
_PLACE: Final = Struct(">q")


def read_rows(
    records: RecordReader,
    key: QueueKey,
    offset: int,
    units: memoryview,
    fields: Collection[str],
    most_bytes: int,
    fewest: int,
) -> MessageRows | None:
    """Read messages of the units of a queue from ``offset`` on, as far as their records are usual,
    lie in one file of the log, are not compressed, and have at most about ``most_bytes`` in the
    table.

    ``fields`` are some of storage.read.message_table.FIELDS. None if these are fewer than
    ``fewest``, as without compiled code. Bodies are checked against their checksums.
    """
    (place,) = _PLACE.unpack_from(units)
    log = records.log
    first = place - place % log.file_size
    file = log.at(first)
    if file is None:
        return None
    reader = TableReader(records)
    table = MessageTable({*fields, _BODY}, len(units) // CQ_STORE_UNIT_SIZE, most_bytes)
    packed = table.buffer(f"{_BODY}_packed")
    begin = fewest * CQ_STORE_UNIT_SIZE  # a part: where bodies are compressed, it is for nothing
    taken = reader.take_usual(file, first, table, key, offset, units[:begin])
    if taken < fewest or packed:
        return None
    if not table.is_full and len(units) > begin:
        taken += reader.take_usual(file, first, table, key, offset + taken, units[begin:])
    count = memoryview(packed).cast("i")[0] if packed else taken
    own = bytes(units[: taken * CQ_STORE_UNIT_SIZE])

    def read() -> Sequence[MessageExt | None]:
        return _reader_of(log, first, file).read_each(own, key, offset)

    return MessageRows(TableOfQueue(table, offset, read), 0, count)


def _reader_of(log: ReadOnlyFiles, first: int, file: ReadMap) -> RecordReader:
    """A reader of one file, which retention may have deleted since it was mapped."""
    kept = ReadOnlyFiles(MapBudget(), log.directory, log.file_size)
    kept.opened[first] = file
    return RecordReader(kept)
