"""Store times of many records at once, wherever in the log they lie.

For reports that read one record in a thousand, or all of them, and nothing else of them.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from storage.format.layout import (
    MESSAGE_MAGIC_V1,
    MESSAGE_MAGIC_V2,
    MIN_RECORD_SIZE,
    SYS_FLAG_POSITION,
    store_timestamp_position,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.files.read_files import ReadOnlyFiles

UNREADABLE: Final = -1
_BORN_HOST_IPV6: Final = 0x10
_DENSE_BYTES: Final = 16 << 10
_EARLY: Final = store_timestamp_position(0)
_LATE: Final = store_timestamp_position(_BORN_HOST_IPV6)
_MAGICS: Final = np.array((MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2), np.int32)


def gather_store_timestamps(
    log: ReadOnlyFiles, places: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Read the store times (ms) of the records at ``places``, with the lengths ``sizes``.

    -1 where no record of that length begins, or the file is missing. Bodies are not checked. Costs
    least if places ascend; each read touches the pages of the record's head.
    """
    found = np.full(len(places), UNREADABLE, np.int64)
    files = places // log.file_size
    cuts = np.flatnonzero(np.diff(files)) + 1
    for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(places)], strict=True):
        if start < end:
            first = int(files[start]) * log.file_size
            found[start:end] = _in_file(log, first, places[start:end] - first, sizes[start:end])
    return found


def _in_file(
    log: ReadOnlyFiles, first: int, positions: NDArray[np.int64], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    found = np.full(len(positions), UNREADABLE, np.int64)
    file = log.at(first)
    if file is None or file.length < MIN_RECORD_SIZE:
        return found
    # Read-ahead is on only where most of its bytes are used.
    dense = positions[-1] - positions[0] < len(positions) * _DENSE_BYTES
    file.map.madvise(mmap.MADV_NORMAL if dense else mmap.MADV_RANDOM)
    fits = (positions >= 0) & (sizes >= MIN_RECORD_SIZE) & (positions + sizes <= file.length)
    at = positions[fits]
    ints, longs = _every(file.view, ">i4", 4), _every(file.view, ">i8", 8)
    magics = ints[at + 4].astype(np.int32)
    is_record = (ints[at] == sizes[fits]) & ((magics == _MAGICS[0]) | (magics == _MAGICS[1]))
    late = (ints[at + SYS_FLAG_POSITION] & _BORN_HOST_IPV6) != 0
    times = longs[at + np.where(late, _LATE, _EARLY)].astype(np.int64)
    found[fits] = np.where(is_record, times, UNREADABLE)
    return found


def _every(view: memoryview, kind: str, width: int) -> NDArray[Any]:
    """The numbers that begin at every single byte. Only to be indexed: a copy would be huge."""
    return np.ndarray((len(view) - width + 1,), kind, view, strides=(1,))
