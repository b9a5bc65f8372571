"""Tables of messages at places in the log, of any queues: what a search of the log has found.

Compiled code fills them in one pass, as it does tables of queues (``message_table.py``). The caller
reads a record singly that the pass does not take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from storage import native
from storage.format.host import unpack_host

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles

    from .message_table import MessageTable


def fill_from_places(
    table: MessageTable, log: ReadOnlyFiles, places: memoryview, log_end: int
) -> int:
    """Add the messages at places in the log, native longs that ascend; gives how many.

    Ends where the table is full, at the end of a log file, and before a record that is unusual or
    cannot be read.
    """
    table.is_full = False
    if not len(places):
        return 0
    first = places[0] - places[0] % log.file_size
    file = log.at(first) if places[0] >= 0 else None
    if file is None:
        return 0
    taken, table.rows, table.size, table.is_full = fill_places(
        places,
        file.view[: max(0, min(file.length, log_end - first))],
        first,
        table.buffers,
        table.rows,
        table.most_rows,
        table.size,
        table.most_bytes,
        table.row_bytes,
        unpack_host,
    )
    return int(taken)


def _fill_places(*given: Any) -> tuple[int, int, int, bool]:
    """The pass that takes nothing: each message is read singly."""
    return 0, given[4], given[6], False


fill_places: Final = native.form("fill_places", _fill_places)
