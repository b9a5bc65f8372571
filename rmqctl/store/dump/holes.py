"""The holes of a file: parts that were never written, which need not be read to be zeros."""

from bisect import bisect_right
from pathlib import Path

from storage.files.fs import FileSystem


class Holes:
    """The holes of one file of ``length`` bytes, as they were when this was made."""

    def __init__(self, path: Path, length: int) -> None:
        with path.open("rb") as opened:
            self._data = FileSystem().data_ranges(opened.fileno(), 0, length)
        self._starts = [start for start, _ in self._data]
        self._length = length

    @property
    def used(self) -> int:
        """Where the hole at the end of the file begins; the file's length without one."""
        return self._data[-1][1] if self._data else 0

    def next_data(self, at: int) -> int:
        """The first position from ``at`` on that is in no hole; the file's length if none is."""
        number = bisect_right(self._starts, at)
        if number and at < self._data[number - 1][1]:
            return at
        return self._starts[number] if number < len(self._starts) else max(at, self._length)
