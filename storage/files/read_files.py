"""Files of a store, mapped for reading only.

A reader maps files by itself and shares no map with the writer. Maps are dropped, never closed: a
thread that still slices one keeps it alive, and a file that retention has deleted stays readable
until its last reader releases it.
"""

from __future__ import annotations

import mmap
import os
import stat
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from storage.format.names import COMMITLOG, CONSUMEQUEUE, exact_str, file_name, parse_file_name
from storage.platform.space import next_data

from .many_files import list_offsets

if TYPE_CHECKING:
    from storage.config import StoreConfig

    from .queue_folders import QueueFolders

MAX_MAPS: Final = 256
"""Maps that one reader keeps, over all its files; each holds a file descriptor."""

FEW_BYTES: Final = 4096
"""A reader of up to so many bytes of a file causes no read-ahead, see
:meth:`ReadOnlyFiles.look`."""


# a pipe must not block until its other end is open
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_NOTHING: Final = memoryview(b"")
_OFTEN: Final = 4

MAP_MAKERS: Final[dict[str, Callable[[str, int], mmap.mmap]]] = {}
"""By a folder, with a slash at its end: what makes the maps of files below it, from path and
length. Their bytes come from elsewhere (analytics.object_store)."""


class ReadMap:
    """One mapped file: ``map`` for slices that copy, ``view`` for reading without copying.

    ``length`` may be below the file size of the others if the file was cut short.
    """

    __slots__ = ("inode", "length", "map", "observed", "view")

    def __init__(self, mapped: mmap.mmap, inode: int, *, observed: bool = False) -> None:
        self.map = mapped
        self.observed = observed
        """Nothing of it is read ahead: see :meth:`ReadOnlyFiles.look`."""
        self.inode = inode
        """Identity of the file: another one may get its name."""
        self.view = memoryview(mapped)
        self.length = len(mapped)


class MapBudget:
    """Bounds the number of open maps of one reader: the oldest goes first."""

    def __init__(self, max_maps: int = MAX_MAPS) -> None:
        self.max_maps = max_maps
        self.peeks = 0
        """Reads by :meth:`ReadOnlyFiles.peek` of files that were not mapped."""
        self._opened: deque[tuple[dict[int, ReadMap], int]] = deque()
        self._apart: WeakSet[MapBudget] = WeakSet()  # of rows that are done when these are
        self.lock = threading.Lock()  # guards both, and the opening of maps

    def opened(self, maps: dict[int, ReadMap], key: int) -> None:
        """Note a new map of a set of files; needs ``lock``."""
        self._opened.append((maps, key))
        if len(self._opened) > self.max_maps:
            old_maps, old_key = self._opened.popleft()
            old_maps.pop(old_key, None)

    def covers(self, apart: MapBudget) -> None:
        """Make :meth:`drop` also release the maps of another budget, if that is alive then."""
        with self.lock:
            self._apart.add(apart)

    @property
    def is_full(self) -> bool:
        """Whether the next map takes the place of another one."""
        return len(self._opened) >= self.max_maps

    def drop(self) -> None:
        """Release all maps, at the end of a reader. Each is closed as soon as no thread reads from
        it."""
        with self.lock:
            while self._opened:
                maps, key = self._opened.popleft()
                maps.pop(key, None)
            apart = list(self._apart)
        for budget in apart:
            budget.drop()


class ReadOnlyFiles:
    """Equally long files named after the offset of their first byte: the log, or one queue.

    Thread-safe. A missing file is None; errors of the operating system other than a missing file
    (no permission, a failing disk) are raised as OSError.
    """

    __slots__ = (
        *("_at_random", "_budget", "_offsets", "_often", "_peeked"),
        *("directory", "file_size", "opened"),
    )

    def __init__(self, budget: MapBudget, directory: str, file_size: int) -> None:
        self._budget = budget
        self.directory = directory
        self.file_size = file_size
        self.opened: dict[int, ReadMap] = {}
        """The files that are mapped now; may change at any time."""
        self._offsets: list[int] = []
        self._at_random = False
        self._peeked, self._often = -max(budget.max_maps, 1), 0

    def reads_at_random(self) -> None:
        """Turn read-ahead off: reading a record costs a page of the disk, not 32."""
        self._at_random = True
        for found in list(self.opened.values()):
            found.map.madvise(mmap.MADV_RANDOM)

    def at(self, file_from_offset: int) -> ReadMap | None:
        """The file that begins at this offset, or None if there is none or it is empty."""
        found = self.opened.get(file_from_offset)
        if found is None:
            return self._open(file_from_offset)
        if found.observed:
            self._read_on(found)
        return found

    def look(self, file_from_offset: int) -> ReadMap | None:
        """The same for a reader of a few bytes here and there: nothing is read ahead for it.

        In a store with thousands of queues it would be most of each file, and push all else out of
        the page cache. Read-ahead starts again once the file is opened by :meth:`at`.
        """
        found = self.opened.get(file_from_offset)
        return found if found is not None else self._open(file_from_offset, observed=True)

    def peek(self, position: int, size: int) -> memoryview:
        """A few bytes of one file, from ``position`` of all on; fewer at its end, none where it is
        missing.

        A file that is not mapped is read where as many are as may be: in a store with thousands of
        queues its map would be dropped before it is used again, and takes four times as long. One
        that comes again and again is mapped.
        """
        within = position % self.file_size
        file = self.opened.get(position - within)
        if file is None and self._budget.is_full and not MAP_MAKERS and not self._comes_often():
            return memoryview(self._read(position - within, within, size))
        file = file or self.look(position - within)
        return _NOTHING if file is None else file.view[within : within + size]

    def head(self, file_from_offset: int, size: int) -> tuple[bytes, int] | None:
        """The first bytes of a file that has only zeros after them, and its length; None if it has
        more than that, or if finding out takes longer than a map. No map takes its place."""
        if MAP_MAKERS or file_from_offset in self.opened:
            return None
        try:
            fd = os.open(self.path(file_from_offset), _FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            info = os.fstat(fd)
            length = min(info.st_size, self.file_size)
            if not stat.S_ISREG(info.st_mode) or (length > size and _has_data_from(fd, size)):
                return None
            return os.pread(fd, min(size, length), 0), length
        finally:
            os.close(fd)

    def _comes_often(self) -> bool:
        """Whether it was read some times lately, each time soon after the last."""
        budget = self._budget
        budget.peeks += 1
        soon = budget.peeks - self._peeked <= budget.max_maps
        self._peeked, self._often = budget.peeks, self._often + 1 if soon else 0
        return self._often > _OFTEN

    def _read(self, file_from_offset: int, within: int, size: int) -> bytes:
        if file_from_offset < 0:
            return b""
        try:
            fd = os.open(self.path(file_from_offset), _FLAGS)
        except (FileNotFoundError, NotADirectoryError):
            return b""
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return b""
            return os.pread(fd, min(size, self.file_size - within), within)
        finally:
            os.close(fd)

    def offsets(self) -> list[int]:
        """First offsets of the files, ascending, as they were listed last; names of another form
        are left out.

        Files that were added since then may be missing, see :meth:`relist`.
        """
        return self._offsets or self.relist()

    def list_as(self, offsets: Sequence[int]) -> None:
        """Take over what another reader of the same files has listed, unless they were listed."""
        self._offsets = self._offsets or [*offsets]

    def first(self) -> int:
        """First offset of the oldest file, 0 without any."""
        files = self.offsets()
        return files[0] if files else 0

    def relist(self) -> list[int]:
        """List the folder anew and drop the maps of files that are gone or were replaced."""
        try:
            with os.scandir(self.directory) as entries:
                names = [
                    entry.name
                    for entry in entries
                    if entry.is_file(follow_symlinks=False) or leads_to_file(entry)
                ]
        except (FileNotFoundError, NotADirectoryError):
            names = []
        size, offsets = self.file_size, []
        for name in names:
            offset = parse_file_name(name)
            if offset is not None and not offset % size:
                offsets.append(offset)
        offsets.sort()
        if self.opened:
            for offset, opened in list(self.opened.items()):
                if self._inode(offset) != opened.inode:
                    self.opened.pop(offset, None)
        self._offsets = offsets
        return offsets

    def note_listed(self, offsets: list[int]) -> list[int]:
        """Take over what was listed now; no file is mapped."""
        self._offsets = offsets
        return offsets

    def modified_ms(self, file_from_offset: int) -> int | None:
        """When the file was last modified, by the file system's clock; None if it is missing."""
        try:
            modified = os.stat(self.path(file_from_offset)).st_mtime_ns  # noqa: PTH116 - asked often
            return modified // 1_000_000
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _inode(self, file_from_offset: int) -> int | None:
        try:
            return os.stat(self.path(file_from_offset)).st_ino  # noqa: PTH116 - asked often
        except (FileNotFoundError, NotADirectoryError):
            return None

    def path(self, file_from_offset: int) -> str:
        """Where the file that begins at this offset lies."""
        return f"{self.directory}/{file_name(file_from_offset)}"

    def _read_on(self, found: ReadMap) -> None:
        """Turn read-ahead on for a file that was opened by :meth:`look` before."""
        found.observed = False
        if not self._at_random:
            found.map.madvise(mmap.MADV_NORMAL)

    def _open(self, file_from_offset: int, *, observed: bool = False) -> ReadMap | None:
        if file_from_offset < 0:
            return None
        budget = self._budget
        with budget.lock:
            found = self.opened.get(file_from_offset)
            if found is not None:
                return found
            try:
                fd = os.open(self.path(file_from_offset), _FLAGS)
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                info = os.fstat(fd)
                length = min(info.st_size, self.file_size)
                if length == 0 or not stat.S_ISREG(info.st_mode):
                    return None
                mapped = _map(self.path(file_from_offset), fd, length)
                found = ReadMap(mapped, info.st_ino, observed=observed)
            finally:
                os.close(fd)
            if observed or self._at_random:
                found.map.madvise(mmap.MADV_RANDOM)
            if length == self.file_size:  # a shorter one may still grow: check again next time
                self.opened[file_from_offset] = found
                budget.opened(self.opened, file_from_offset)
        return found


def _has_data_from(fd: int, position: int) -> bool:
    """Whether a file may have other bytes than zeros from a position on."""
    try:
        return next_data(fd, position) is not None
    except OSError:  # the file system does not know its holes
        return True


def _map(path: str, fd: int, length: int) -> mmap.mmap:
    for folder, make in list(MAP_MAKERS.items()):
        if path.startswith(folder):
            return make(path, length)
    return mmap.mmap(fd, length, access=mmap.ACCESS_READ)


def relist_each(rows: Sequence[ReadOnlyFiles]) -> list[list[int]]:
    """List the folders of rows whose files have one length anew, see
    :meth:`ReadOnlyFiles.relist`."""
    if not rows:
        return []
    listed = list_offsets([row.directory for row in rows], rows[0].file_size)
    return [
        row.relist() if offsets is None or row.opened else row.note_listed(offsets)
        for row, offsets in zip(rows, listed, strict=True)
    ]


class StoreFiles:
    """The log and the queues of one store as files that share one budget of maps."""

    def __init__(self, root: Path, config: StoreConfig, max_maps: int = MAX_MAPS) -> None:
        self.budget = MapBudget(max_maps)
        self._config = config
        self._queue_root = str(root / CONSUMEQUEUE)
        self._queue_file_size = config.mapped_file_size_consume_queue
        self._queues: dict[tuple[str, int], ReadOnlyFiles] = {}
        self._folders: QueueFolders | None = None
        self.root = root
        self.log = ReadOnlyFiles(
            self.budget, str(root / COMMITLOG), config.mapped_file_size_commit_log
        )

    def queue(self, topic: str, queue_id: int) -> ReadOnlyFiles | None:
        """The files of a queue, whether there are any or not; None if no queue can have that
        name."""
        found = self._queues.get((topic, queue_id))
        if found is None and queue_id >= 0 and is_folder_name(topic):
            path = f"{self._queue_root}/{exact_str(topic)}/{queue_id}"
            found = ReadOnlyFiles(self.budget, path, self._queue_file_size)
            found = self._queues.setdefault((topic, queue_id), found)
        return found

    def apart(self) -> StoreFiles:
        """The same files with maps of their own, for a long walk that must not push out those of
        readers. They are released with these, at the latest."""
        files = StoreFiles(self.root, self._config)
        self.budget.covers(files.budget)
        return files

    def queue_folders(self) -> list[tuple[str, int]]:
        """All (topic, queue id) that have a folder, sorted; folders of other names are left out."""
        if self._folders is None:
            from .queue_folders import QueueFolders  # a writer of some queues needs no list

            self._folders = QueueFolders(self._queue_root)
        return self._folders.now()

    def relist(self) -> None:
        """List all folders anew, after files were deleted."""
        self.log.relist()
        for row in list(self._queues.values()):
            row.relist()


def leads_to_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file, or a link to one. A broken or circular link is not one; for these the
    entry's own ``is_file`` raises OSError."""
    return Path(entry.path).is_file() if entry.is_symlink() else entry.is_file()


def leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one. A broken or circular link is not one; for these the
    entry's own ``is_dir`` raises OSError."""
    return Path(entry.path).is_dir() if entry.is_symlink() else entry.is_dir()


def is_folder_name(topic: str) -> bool:
    """Tell whether a topic can have a folder of its own below ``consumequeue``."""
    return topic not in ("", ".", "..") and "/" not in topic and "\0" not in topic
