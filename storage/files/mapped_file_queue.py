"""A series of equally long files that together are one long array of bytes.

File names are the 20-digit offset of their first byte (org.apache.rocketmq.store.MappedFileQueue),
so the file of an offset is found by arithmetic. Files are opened when they are first needed.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from storage.errors import CorruptFileError
from storage.format.names import file_name, parse_file_name

from .mapped_file import MappedFile

if TYPE_CHECKING:
    from storage.coordination.kept_links import KeptLinks

    from .fs import FileSystem
    from .preallocated_file import PreallocatedFile


class MappedFileQueue:
    """The files of one folder: ``commitlog`` or ``consumequeue/<topic>/<queue>``.

    ``max_open`` files stay mapped, the least recently used is closed first. Callers hold the
    store's lock; returned files must not be used after it is released. With ``second_names`` new
    files are protected against deletion by others; with ``ahead`` they are made before they are
    needed.
    """

    __slots__ = (
        "_ahead",
        "_fs",
        "_max_open",
        "_second_names",
        "_staging",
        "directory",
        "file_size",
        "opened",
        "writable",
    )

    def __init__(
        self,
        fs: FileSystem,
        directory: Path,
        file_size: int,
        *,
        writable: bool,
        staging: Path | None = None,
        max_open: int = 64,
        second_names: KeptLinks | None = None,
        ahead: PreallocatedFile | None = None,
    ) -> None:
        self._fs = fs
        self.directory = directory
        self.file_size = file_size
        self.writable = writable
        self._staging = staging
        self._second_names = second_names
        self._ahead = ahead
        self._max_open = max_open
        self.opened: OrderedDict[int, MappedFile] = OrderedDict()
        """The files that are mapped now, by their first offset."""

    def offsets(self) -> list[int]:
        """First offsets of the files that exist now, ascending; other names are left out."""
        try:
            names = [path.name for path in self.directory.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = (parse_file_name(name) for name in names)
        return sorted(offset for offset in found if offset is not None)

    def find(self, offset: int) -> MappedFile | None:
        """The file that holds byte ``offset``, or None if it does not exist (any more)."""
        return self.at(offset - offset % self.file_size)

    def at(self, file_from_offset: int) -> MappedFile | None:
        """The file that begins at ``file_from_offset``, or None if there is none of full length."""
        found = self.opened.get(file_from_offset)
        if found is not None:
            return found
        path = self.path(file_from_offset)
        try:
            if path.stat().st_size < self.file_size:
                return None
            found = MappedFile(
                self._fs, path, self.file_size, file_from_offset, writable=self.writable
            )
        except (FileNotFoundError, NotADirectoryError):
            return None
        self._keep(found)
        return found

    def path(self, file_from_offset: int) -> Path:
        """Where the file that begins at this offset lies."""
        return self.directory / file_name(file_from_offset)

    def create(
        self,
        file_from_offset: int,
        first_window: int,
        position: int = 0,
        content: bytes | bytearray = b"",
        *,
        sync_content: bool = True,
    ) -> MappedFile:
        """Make the file that begins at this offset, holding ``content`` at ``position``.

        It gets blocks for its first ``first_window`` bytes and for the content. It is built under
        another name and renamed into place, because a Java broker refuses to load a folder with a
        file of another length. Its name and length are on the device on return, and with
        ``sync_content`` the content. Without ``sync_content`` it may be one that was made ahead:
        then its length is on the device, and its name is after the next sync of the folder. Raises
        CorruptFileError if a file of that name exists: it is too short to be the store's.
        """
        if self._staging is None:
            raise RuntimeError("a queue of files opened for reading creates nothing")
        path = self.path(file_from_offset)
        self.refuse_other_length(file_from_offset)
        self._fs.make_dirs(self.directory)
        if sync_content or not self._name_the_one_ahead(path, position, content):
            self._build(path, first_window, position, content, sync_content=sync_content)
        created = self.at(file_from_offset)
        assert created is not None
        created.expect_nothing_to_read()
        return created

    def refuse_other_length(self, file_from_offset: int) -> None:
        """Raise CorruptFileError if a file of that name exists that :meth:`at` does not open,
        and that is not empty."""
        path = self.path(file_from_offset)
        with suppress(FileNotFoundError, NotADirectoryError):
            length = path.stat().st_size
            if length:
                raise CorruptFileError(
                    path, length, f"its length is not that of the store's files, {self.file_size}"
                )

    def _name_the_one_ahead(self, path: Path, position: int, content: bytes | bytearray) -> bool:
        fd = None if self._ahead is None or path.exists() else self._ahead.take()
        if fd is None:
            return False
        try:
            if content:
                self._fs.reserve(fd, position, len(content))
                self._fs.write(fd, content, position)
            with suppress(OSError):  # no /proc, say: the file is built then
                self._fs.give_name(fd, path)
                return True
        finally:
            self._fs.close(fd)
        return False

    def _build(
        self,
        path: Path,
        first_window: int,
        position: int,
        content: bytes | bytearray,
        *,
        sync_content: bool,
    ) -> None:
        assert self._staging is not None  # checked by create
        fd, temporary = self._fs.create_beside(self._staging / f"new-{path.name}")
        try:
            try:
                self._fs.set_length(fd, self.file_size)
                self._fs.reserve(fd, 0, min(first_window, self.file_size))
                if not sync_content:
                    self._fs.sync(fd)
                if content:
                    self._fs.reserve(fd, position, len(content))
                    self._fs.write(fd, content, position)
                if sync_content:
                    self._fs.sync(fd)
            finally:
                self._fs.close(fd)
            if self._second_names is not None:
                self._second_names.keep(temporary, path)
            self._fs.rename(temporary, path)
        except BaseException as error:
            with suppress(OSError):
                self._fs.unlink(temporary)
            if isinstance(error, OSError) and error.filename2 is not None:
                error.filename, error.filename2 = str(path), None  # the temporary one is gone
            raise
        self._fs.sync_dir(self.directory)

    def forget(self, file_from_offset: int) -> None:
        """Close the file's map if it is open (before or after the file is deleted)."""
        found = self.opened.pop(file_from_offset, None)
        if found is not None:
            found.close()

    def delete(self, file_from_offset: int) -> None:
        """Close and remove a file."""
        self.forget(file_from_offset)
        self._fs.unlink(self.path(file_from_offset))
        if self._second_names is not None:
            self._second_names.forget(self.path(file_from_offset))

    def close(self) -> None:
        """Close all maps."""
        while self.opened:
            self.opened.popitem()[1].close()

    def _keep(self, file: MappedFile) -> None:
        self.opened[file.file_from_offset] = file
        while len(self.opened) > self._max_open:
            self.opened.popitem(last=False)[1].close()
