"""One file that is filled on demand: memory of its size, and which pages of it were looked at.

Readers of a store map its files, and compiled code goes from one place to another in them. So it is
not known beforehand what they look at. The page table shows it afterwards: a page of private memory
that was never touched has no entry there, and ``mincore`` says so. A page that was looked at
before its bytes were fetched shows zeros. What was read with it is discarded (``steady``), so zeros
never count as data.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from storage.platform.memory import give_back, map_sparse, note_touched

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE: Final = mmap.PAGESIZE
BLOCK: Final = 16 << 10
"""Bytes that are fetched for a page of the log: a record is seldom longer."""
FAR: Final = 1 << 20
"""Bytes between two ranges that are cheaper to fetch than another request."""
_MOST_AHEAD: Final = 8 << 20
"""Bytes that are fetched after those that a reader looked at, where it goes through a file."""
_TIMES: Final = 2
"""How many times the wanted bytes are fetched at most, to have fewer requests."""

Ranges = tuple["NDArray[np.int64]", "NDArray[np.int64]"]
"""Begins and ends, in bytes."""


class PagedFile:
    """A file of ``size`` bytes, of which the first ``stored`` can be fetched; the others are zero
    but for ``patches``. Only the bytes that are fetched take memory. Not thread-safe, but for
    ``fill`` of different ranges."""

    def __init__(
        self,
        size: int,
        stored: int,
        patches: Sequence[tuple[int, bytes]] = (),
        block: int = BLOCK,
    ) -> None:
        """``patches`` (position and bytes) replace what is stored. ``block``: what is fetched for a
        byte. Raises OSError without memory to address it."""
        self.map = map_sparse(size)
        self.stored = min(size, stored)
        self._size = size
        self._patches = patches
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self._fetched = np.zeros(-(-size // PAGE), np.bool_)
        self._block = self._ahead = block
        self._begin()

    def _begin(self) -> None:
        self._fetched[:] = False
        self._fetched[-(-self.stored // PAGE) :] = True
        self._patch(self.stored - self.stored % -PAGE, self._size)  # from the next page on

    @property
    def held(self) -> int:
        """Bytes of memory that it takes, at most."""
        return int(np.count_nonzero(self._fetched[: -(-self.stored // PAGE)])) * PAGE

    def missing(self) -> Ranges:
        """What was looked at and is not there yet, in whole blocks; more and more after what was
        there, as a reader goes on there that follows the log."""
        wanted = _touched(self._address, self._size) & ~self._fetched
        starts, ends = _runs(wanted)
        if not len(starts):
            return starts, ends
        follows = self._fetched[starts // PAGE - 1] & (starts > 0)
        self._ahead = min(2 * self._ahead, _MOST_AHEAD) if follows.any() else self._block
        ends = np.where(follows, ends + self._ahead, ends)
        return self.lacking(starts - starts % self._block, ends + -ends % self._block)

    def lacking(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Ranges:
        """The pages of some ranges that are not there yet; near ones are joined."""
        steps = np.zeros(len(self._fetched) + 1, np.int64)
        starts, ends = np.clip(starts, 0, self.stored), np.clip(ends, 0, self.stored)
        some = starts < ends
        np.add.at(steps, starts[some] // PAGE, 1)
        np.subtract.at(steps, -(-ends[some] // PAGE), 1)
        wanted = (np.cumsum(steps[:-1]) > 0) & ~self._fetched
        starts, ends = joined(*_runs(wanted))
        return starts, np.minimum(ends, self.stored)

    def fill(self, start: int, data: bytes | memoryview) -> None:
        """Put bytes there that were fetched: whole pages, but for the end of the file."""
        end = start + len(data)
        self.map[start:end] = data
        self._patch(start, self._size if end >= self.stored else end)
        self._fetched[start // PAGE : -(-end // PAGE)] = True

    def _patch(self, start: int, end: int) -> None:
        for at, data in self._patches:
            low, high = max(at, start), min(at + len(data), end)
            if low < high:
                self.map[low:high] = data[low - at : high - at]

    def drop(self) -> None:
        """Give all memory back: nothing is there any more."""
        give_back(self.map)
        self._begin()


def joined(starts: NDArray[np.int64], ends: NDArray[np.int64], gap: int = FAR) -> Ranges:
    """Join ranges, which ascend, across gaps of up to ``gap`` bytes; only across smaller ones where
    many times the bytes would be fetched otherwise. So a file is not fetched whole for records that
    are spread over it."""
    wanted = int((ends - starts).sum())
    while True:
        breaks = np.flatnonzero(starts[1:] > ends[:-1] + gap)
        found = starts[np.r_[0, breaks + 1]] if len(starts) else starts
        stops = ends[np.r_[breaks, len(ends) - 1]] if len(ends) else ends
        if gap <= PAGE or int((stops - found).sum()) <= _TIMES * wanted:
            return found, stops
        gap //= 4


@cache
def shows_pages() -> bool:
    """Whether this system says which pages were looked at: Linux does, but some sandboxes name all
    pages."""
    found = PagedFile(2 * PAGE, 2 * PAGE)
    found.map[0]
    try:
        touched = _touched(found._address, found._size)
    except OSError:
        return False
    return bool(touched.tolist() == [True, False])


def _touched(address: int, size: int) -> NDArray[np.bool_]:
    """Which pages of some memory have been touched. Raises OSError."""
    found = np.zeros(-(-size // PAGE), np.uint8)
    note_touched(address, size, found.ctypes.data)
    return (found & 1).astype(np.bool_)


def _runs(pages: NDArray[np.bool_]) -> Ranges:
    """The runs of true pages, in bytes."""
    edges = np.flatnonzero(np.diff(pages.astype(np.int8), prepend=0, append=0))
    return edges[::2] * PAGE, edges[1::2] * PAGE
