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
pages_ahead: Final = native.form("pages_ahead", native.nothing)


class MappedFile:
    """A mapped file of fixed length.

    Not thread-safe by itself: writers hold the write lock, readers only read. Views of the map
    never leave this class: :meth:`read` copies. ``file_from_offset`` is the offset of the first
    byte in the queue of files that this one belongs to.
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
        """End of the bytes that are known to have blocks, from the first reserved one on."""
        self.ready_to = 0
        """End of the bytes that :meth:`get_ready` was called for."""
        self.pages: PagesAhead | None = None
        """The maker of pages, from the first :meth:`make_pages` on."""
        self.fd = fs.open(path, writable=writable)
        try:
            self.map: mmap.mmap = fs.map(self.fd, size, writable=writable)
        except ValueError:  # Python's error for a file that is shorter
            fs.close(self.fd)
            raise CorruptFileError(
                path, 0, f"it is shorter than {size} bytes; 'rmqctl store repair' makes it right"
            ) from None
        except BaseException:
            fs.close(self.fd)
            raise

    @property
    def deleted(self) -> bool:
        """Whether the file has no name any more (it was removed while it was open)."""
        return self._fs.links(self.fd) == 0

    def read(self, position: int, length: int) -> bytes:
        """Copy up to ``length`` bytes from ``position`` (shorter at the end of the file)."""
        return self.map[position : position + length]

    def reserve(self, begin: int, end: int, window: int) -> None:
        """Reserve blocks for all bytes in [begin, end), in steps of ``window`` bytes; the next call
        begins where this one ended.

        Raises OSError (ENOSPC) on a full disk; nothing is changed then.
        """
        if end > self.reserved_to:
            # Reservations of other processes may end anywhere, and a copy may have holes.
            start = self.reserved_to or begin - begin % mmap.PAGESIZE
            target = min(self.size, end + window - end % window)
            self._fs.reserve(self.fd, start, target - start)
            self.reserved_to = target

    def reserve_range(self, start: int, end: int) -> None:
        """Reserve blocks for exactly these bytes (for the parts of an index file)."""
        self._fs.reserve(self.fd, start, end - start)

    def get_ready(self, start: int, end: int, *, syncs_each: bool = False) -> None:
        """Bring the pages of [start, end) into memory, where all is zero, before they are stored
        to; those below ``ready_to`` are there. Where each store is synced pages are small, since a
        sync scans all of a page that was partly written.

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
        """Make blocks and pages up to ``end`` in a thread, while stores go on at ``position``.

        Does not wait; where nothing is compiled, nothing is done. The bytes of pages do not change:
        needs no write lock. The thread makes ``piece`` bytes at once and begins ``lead`` after
        ``position`` (a file's first request decides on both). It pauses for a while when stores
        overtake it, or where there are no blocks. With the first request it also makes the
        ``first`` bytes of the file, which have blocks.
        """
        if self.pages is None:
            if type(self.map) is not mmap.mmap:
                return
            self.pages = pages_ahead(self.map, self.fd, piece, lead)
            if self.pages is None:
                return
            if first:
                self.pages.want_first(first)
        self.pages.want(position, end)

    def take_made_pages(self, position: int) -> None:
        """Note as ready the pages that were made from ``position`` on, where stores are."""
        if self.pages is not None:
            self.pages.stores_at(position)
            self.ready_to = max(self.ready_to, self.pages.made_to(position))

    def expect_nothing_to_read(self) -> None:
        """Have the kernel make pages of this new file one by one, as they are stored to.

        Otherwise it would read ahead, and fill megabytes of memory with the zeros of an empty file:
        milliseconds for the first store.
        """
        self.map.madvise(mmap.MADV_RANDOM)

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        """Write through the descriptor: best for many bytes; visible in all maps at once."""
        self._fs.write(self.fd, data, position)

    @property
    def by_descriptor(self) -> StoresByDescriptor:
        """A replacement for the map where each store is followed by a sync."""
        return StoresByDescriptor(self)

    def sync(self) -> None:
        """Sync the file to the device. Blocks."""
        self._fs.sync(self.fd)

    def close(self) -> None:
        """Unmap and close. The file keeps its full length: Java refuses a shorter one."""
        if self.pages is not None:
            self.pages.end()
        self.map.close()
        self._fs.close(self.fd)


class StoresByDescriptor:
    """Takes stores as a map does, and writes them through the descriptor.

    The kernel keeps pages in blocks of up to 2 MiB. After a store to a map a sync has to write the
    whole block; this way it writes only the pages of the store.
    """

    __slots__ = ("_file",)

    def __init__(self, file: MappedFile) -> None:
        self._file = file

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._file.map.closed

    def __setitem__(self, part: slice, data: bytes) -> None:
        self._file.write(part.start, data)
