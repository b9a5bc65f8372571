"""Reading the progress of groups: our files, and Java's where that counts; without a lock.

The progress is, in this order:

* the table in ``rmqctl/offsets.json``, where a store was last written by version 1;
* the log, ``rmqctl/offsets.log``; without one beside the mark of version 2 it is lost;
* Java's ``config/consumerOffset.json``.

A reader that holds ``rmqctl/offsets.lock`` sees what a writer may go on from. Others see the files
of a moment, in which the last line of the log may not be acknowledged yet.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.errors import CorruptFileError, StoreVersionError
from storage.files.bounded import read_bounded, read_with_status
from storage.files.fs import FileSystem
from storage.format.names import LOCK, OURS
from storage.format.shapes import ShapeError, anything, members, table, text

from .checksummed_json import entry_of, seal
from .config_file import ConfigFile, ConfigSource, FileIdent, LoadedConfig, ident_of
from .consumer_offsets import consumer_offset_file
from .progress_log import NEXT_JAVA, REMEDY, ProgressLog
from .progress_table import VERSION, ProgressTable

if TYPE_CHECKING:
    from .progress_rows import KnownRows

OFFSETS_FILE: Final = "offsets.log"
OFFSETS_MARK: Final = "offsets.json"
MARK: Final = seal({"version": VERSION, "progress": OFFSETS_FILE})
"""The content of offsets.json beside a log."""

TABLE_VERSION: Final = 1
"""Of an offsets.json that has a table."""
_NEXT: Final = "next"
"""Member of its content: the table that counts if Java's file has the SHA-256 ``next_java``."""
_TABLE_SHAPE: Final = members({}, {_NEXT: table(anything), NEXT_JAVA: text})
_TABLE_REMEDY: Final = (
    "'rmqctl store recover-offsets' puts it together again; or remove it to go on from "
    "Java's config/consumerOffset.json"
)

Idents = tuple[FileIdent | None, FileIdent | None, int | None, FileIdent | None]
"""The log, offsets.json, Java's lock, Java's file."""


class ProgressReader:
    """The files of one store, read as far as they have changed. Not safe for threads."""

    def __init__(self, root: Path, fs: FileSystem) -> None:
        self.path = root / OURS / OFFSETS_FILE
        self.mark = root / OURS / OFFSETS_MARK
        self.log: ProgressLog | None = None
        """The log as it was read last."""
        self.is_marked = False
        """Whether the mark was beside it."""
        self._root = root
        self._fs = fs
        self._java_lock = str(root / LOCK)
        self._rows: KnownRows | None = None

    def idents(self) -> Idents:
        """The values that change when a file does."""
        java = consumer_offset_file(self._root, self._fs).ident()
        return ident_of(self.path), ident_of(self.mark), self.lock_mtime_ns(), java

    def load(self) -> ProgressTable:
        """Read the progress, and Java's file if Java has run since. The table is the caller's.

        ``changed``: it is to be written as a whole.
        """
        lock_mtime_ns = self.lock_mtime_ns()
        content = self.content()
        if content is None:
            table = ProgressTable(lock_mtime_ns)
            loaded = consumer_offset_file(self._root).load()
            table.adopt(loaded.made or {})
            self._note_doubt(table, loaded)
            return table
        if isinstance(content, ProgressLog):
            table = self._table_of_log(content)
        else:
            table = self._table_of(content)
            table.changed = _NEXT in content  # settled by the next writer
        if table.lock_mtime_ns != lock_mtime_ns:
            loaded = self.load_java()
            # A file that a crash emptied or tore is ignored: it did not delete all progress.
            if loaded.source is not ConfigSource.NONE:
                table.adopt(loaded.made)
            self._note_doubt(table, loaded)
            table.lock_mtime_ns = lock_mtime_ns
            table.changed = True
        return table

    def content(self, fd: int = -1) -> ProgressLog | dict[str, Any] | None:
        """Read our files as far as they have changed: the log, or the table of an old store; None
        where Java's file is the progress. ``fd`` is the log's, if it is open.

        Raises CorruptFileError and StoreVersionError.
        """
        known = self.log
        if known is None:
            return self._read_all(None)
        opened = fd
        try:
            if fd < 0:
                opened = self._fs.open(self.path, writable=False)
            if known.follow(opened):
                return known
        except OSError:
            known = None  # a whole reading says what is wrong
        finally:
            if opened >= 0 and opened != fd:
                self._fs.close(opened)
        return self._read_all(known)

    def _read_all(self, known: ProgressLog | None) -> ProgressLog | dict[str, Any] | None:
        self.log = None
        mark, damage = self._read_mark()
        if mark is not None and mark["version"] == TABLE_VERSION:
            return mark
        self.is_marked = mark is not None
        before = b""
        while True:
            try:
                data, status = read_with_status(self.path)
            except (FileNotFoundError, NotADirectoryError):
                if damage is not None:
                    raise damage from None
                if mark is None:
                    return None
                raise CorruptFileError(self.path, 0, f"it is missing ({REMEDY})") from None
            try:
                if known is None or not known.goes_on_in(data, status.st_ino):
                    known = ProgressLog(self.path, data, status.st_ino, self._known_rows)
            except CorruptFileError:
                if data == before:
                    raise
                # What a writer cuts off and writes may be read half of each.
                known, before = None, data
                continue
            self.log = known
            return known

    def _read_mark(self) -> tuple[dict[str, Any] | None, CorruptFileError | None]:
        """Read offsets.json: the mark, or the table of an old store; and what is wrong with it.

        Raises StoreVersionError.
        """
        while True:
            try:
                data = read_bounded(self.mark)
                if data == MARK:
                    return {"version": VERSION}, None
                entry = entry_of(data, self.mark, VERSION, _TABLE_SHAPE, remedy=_TABLE_REMEDY)
            except (FileNotFoundError, NotADirectoryError):
                return None, None
            except CorruptFileError as error:
                return None, error
            if _NEXT not in entry:
                return entry, None
            if sum_of(consumer_offset_file(self._root)) == entry.get(NEXT_JAVA):
                return {**entry[_NEXT], "version": entry["version"], _NEXT: None}, None
            if read_bounded(self.mark) == data:  # else both may have been replaced meanwhile
                return entry, None

    def _table_of_log(self, log: ProgressLog) -> ProgressTable:
        """The table of a log; with the move that is under way, if Java's file has it."""
        table, move, n = log.table.copy(), log.move, log.ending.n
        if move is None:
            if log.is_exporting and self.has_java(table):
                table.note_exported()
            return table
        if sum_of(consumer_offset_file(self._root)) == move.next_java:
            table = log.moved()
        elif self.content() is not log or log.ending.n != n:
            return self.load()  # it was settled meanwhile
        table.changed = True
        return table

    def _known_rows(self) -> KnownRows:
        if self._rows is None:
            from .progress_rows import KnownRows

            self._rows = KnownRows()
        return self._rows

    def _note_doubt(self, table: ProgressTable, loaded: LoadedConfig) -> None:
        table.doubt = self._doubt(loaded)
        table.is_of_bak = loaded.source is ConfigSource.BAK

    def _doubt(self, loaded: LoadedConfig) -> str | None:
        """Give the reason why Java's file may not hold the last progress of groups."""
        path = consumer_offset_file(self._root).path
        match loaded.source:
            case ConfigSource.BAK:
                why = "is missing" if loaded.ident is None else "cannot be read"
                return f"{path} {why}; these offsets are from its .bak"
            case ConfigSource.NONE if loaded.ident is not None:
                return (
                    f"{path} is empty and has no .bak: what groups had read is not known; "
                    "'rmqctl store recover-offsets' finds out what it can"
                )
        return None

    def _table_of(self, entry: dict[str, Any]) -> ProgressTable:
        try:
            return ProgressTable.from_entry(entry)
        except ShapeError as error:
            raise CorruptFileError(self.mark, 0, f"{error} ({_TABLE_REMEDY})") from None

    def load_java(self) -> LoadedConfig:
        """Read Java's file where we have a table of our own: damage counts as no content."""
        try:
            return consumer_offset_file(self._root, self._fs).load()
        except CorruptFileError:
            return LoadedConfig({}, ConfigSource.NONE, None)

    def has_java(self, table: ProgressTable) -> bool:
        """Whether Java's file has all offsets of a table, and no other."""
        loaded = self.load_java()
        return loaded.source is ConfigSource.FILE and (loaded.made or {}) == table.offsets()

    def lock_mtime_ns(self) -> int | None:
        """When Java last started, None if it never has."""
        try:
            return os.stat(self._java_lock).st_mtime_ns  # noqa: PTH116 - once a commit
        except OSError:
            ident = ident_of(self._java_lock)
            return None if ident is None else ident.mtime_ns

    def has_mark(self) -> bool:
        """Whether the mark is there now."""
        try:
            return read_bounded(self.mark) == MARK
        except (FileNotFoundError, NotADirectoryError, CorruptFileError):
            return False


def version_of_mark(path: Path) -> int | None:
    """The version that offsets.json names; None where it is missing or damaged."""
    with suppress(FileNotFoundError, NotADirectoryError, CorruptFileError):
        try:
            version: int = entry_of(read_bounded(path), path, VERSION, remedy="")["version"]
        except StoreVersionError as error:
            version = error.found
        return version
    return None


def check_mark(root: Path) -> None:
    """Raise CorruptFileError for an offsets.json beside a log that is not its mark."""
    path = root / OURS / OFFSETS_MARK
    if not (root / OURS / OFFSETS_FILE).is_file() or version_of_mark(path) is not None:
        return
    missing = not path.exists() and not path.is_symlink()
    raise CorruptFileError(path, 0, "it is missing" if missing else "it is not the mark of a log")


def sum_of(file: ConfigFile) -> str:
    """SHA-256 of a file's bytes, "" if there is none."""
    try:
        return sha256_of(read_bounded(file.path))
    except CorruptFileError:
        return ""  # never noted as a sum
    except (FileNotFoundError, NotADirectoryError):
        return ""


def sha256_of(data: bytes) -> str:
    """SHA-256 as Java's file is noted by."""
    from hashlib import sha256  # loads a library of 5 MB; a commit does not need it

    return sha256(data).hexdigest()
