"""One file of a store, mapped into memory.

A file has its full length from creation and is zero where nothing was written. Blocks are
reserved in windows ahead of the writer, so that a full disk is an error of a call and never a
SIGBUS in the middle of a store to the map.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Final

from storage import native
from storage.errors import CorruptFileError

from .prefault_size import LARGE, LITTLE, PAGE_SIZES, SMALL

if TYPE_CHECKING:
    from storage.native._compiled import PagesAhead

    from .fs import FileSystem

_ZEROS: Final = memoryview(bytes(LARGE))


class MappedFile:
    """A mapped file of fixed length.

    Not thread-safe by itself: writers hold the gate, readers only read. Views of the map never
    leave this class: :meth:`read` copies. ``file_from_offset`` is the offset of the first byte in
    the queue of files that this one belongs to.
    """

    __slots__ = (
        "_fs",
        "fd",
        "file_from_offset",
        "map",
        "pages",
        "path",
        "ready_to",
        "reserved_to",
        "size",
        "writable",
    )

    def __init__(
        self, fs: FileSystem, path: Path, size: int, file_from_offset: int, *, writable: bool
    ) -> None:
        """Open and map a file. Raises CorruptFileError if it is shorter than ``size``, OSError."""
        self._fs = fs
        self.path = path
        self.size = size
        self.file_from_offset = file_from_offset
        self.writable = writable
        self.reserved_to = 0
        """End of the bytes that are known to have blocks, from the first that was asked for."""
        self.ready_to = 0
        """End of the bytes that :meth:`get_ready` was asked for."""
        self.pages: PagesAhead | None = None
        """What makes pages, from the first :meth:`make_pages` on."""
        self.fd = fs.open(path, writable=writable)
        try:
            self.map: mmap.mmap = fs.map(self.fd, size, writable=writable)
        except ValueError:  # what Python says of a file that is shorter
            fs.close(self.fd)
            raise CorruptFileError(
                path, 0, f"it is shorter than {size} bytes; 'rmqctl store repair' makes it right"
            ) from None
        except BaseException:
            fs.close(self.fd)
            raise

    @property
    def deleted(self) -> bool:
        """Whether the file has no name any more (somebody removed it behind our back)."""
        return self._fs.links(self.fd) == 0

    def read(self, position: int, length: int) -> bytes:
        """Copy up to ``length`` bytes from ``position`` (shorter at the end of the file)."""
        return self.map[position : position + length]

    def reserve(self, begin: int, end: int, window: int) -> None:
        """Have blocks for all bytes in [begin, end), asked for in steps of ``window`` bytes; who
        stores goes on where it ended.

        Raises OSError (ENOSPC) on a full disk; nothing is changed then.
        """
        if end > self.reserved_to:
            # What others have reserved may end anywhere, and a copy may have holes.
            start = self.reserved_to or begin - begin % mmap.PAGESIZE
            target = min(self.size, end + window - end % window)
            self._fs.reserve(self.fd, start, target - start)
            self.reserved_to = target

    def reserve_range(self, start: int, end: int) -> None:
        """Have blocks for exactly these bytes (for the parts of an index file)."""
        self._fs.reserve(self.fd, start, end - start)

    def get_ready(self, start: int, end: int, *, syncs_each: bool = False) -> None:
        """Have the pages of [start, end) in memory, where all is zero, before they are stored to;
        those below ``ready_to`` are. Where each store is synced pages are small, since a sync looks
        through all of a page that it writes a part of.

        A store to a page that was never written waits for the file system to make that one page;
        writing zeros over the zeros makes larger pages, at a fraction of the price for each byte.
        """
        start = max(start, self.ready_to)
        while start < end:
            are_large = end - start > LITTLE and PAGE_SIZES.are_large and not syncs_each
            size = LARGE if are_large else SMALL
            stop = min(end, start - start % size + size)
            began = thread_time()
            self._fs.write(self.fd, _ZEROS[: stop - start], start)
            if stop - start == size:
                PAGE_SIZES.note(size, thread_time() - began)
            start = stop
        self.ready_to = max(self.ready_to, end)

    def make_pages(
        self, position: int, end: int, piece: int = LARGE, lead: int = LARGE, first: int = 0
    ) -> None:
        """Have a thread make blocks and pages up to ``end`` while stores go on at ``position``.

        Does not wait; where nothing is compiled, nothing is done. Pages hold what they held: needs
        no gate. It makes ``piece`` bytes at once, begins ``lead`` behind ``position`` (a file's
        first request decides on both), and lets it be for a while when stores come sooner than it,
        or where there are no blocks. With the first request it makes the ``first`` bytes of the
        file, too, which have blocks.
        """
        if self.pages is None:
            if native.compiled is None or type(self.map) is not mmap.mmap:
                return
            self.pages = native.compiled.pages_ahead(self.map, self.fd, piece, lead)
            if first:
                self.pages.want_first(first)
        self.pages.want(position, end)

    def take_made_pages(self, position: int) -> None:
        """Have what was made from ``position`` on, where stores are, be ready."""
        if self.pages is not None:
            self.pages.stores_at(position)
            self.ready_to = max(self.ready_to, self.pages.made_to(position))

    def expect_nothing_to_read(self) -> None:
        """Have the kernel make pages of this new file one by one, as they are stored to.

        It would read ahead, and fill megabytes of memory with the zeros of a file that has
        nothing in it yet: milliseconds for the first store.
        """
        self.map.madvise(mmap.MADV_RANDOM)

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Write through the descriptor: best for many bytes; visible in all maps at once."""
        self._fs.write(self.fd, data, position)

    @property
    def by_descriptor(self) -> StoresByDescriptor:
        """What stands for the map where each store is followed by a sync."""
        return StoresByDescriptor(self)

    def sync(self) -> None:
        """Have the device hold the file. Blocks."""
        self._fs.sync(self.fd)

    def close(self) -> None:
        """Unmap and close. The file keeps its full length: Java refuses a shorter one."""
        if self.pages is not None:
            self.pages.end()
        self.map.close()
        self._fs.close(self.fd)


class StoresByDescriptor:
    """Takes stores as a map does, and writes them through the descriptor.

    The kernel keeps pages in blocks of up to 2 MiB. A store to a map makes the whole block one that
    a sync has to write; this way it is the pages of the store.
    """

    __slots__ = ("_file",)

    def __init__(self, file: MappedFile) -> None:
        self._file = file

    @property
    def closed(self) -> bool:
        """Whether the file is."""
        return self._file.map.closed

    def __setitem__(self, place: slice, data: bytes) -> None:
        self._file.write(place.start, data)
