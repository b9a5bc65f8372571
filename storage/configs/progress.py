"""The authoritative progress of groups: ``<store>/rmqctl/offsets.json``.

Many processes commit. Each change is one sequence under ``rmqctl/offsets.lock``:

    read the file -> merge -> temporary file, sync -> rename -> sync of the folder -> acknowledge

so a death leaves the state before or after, and a comparison never uses an old value. Java's
consumerOffset.json is written *from* it, never the other way round, because a Java broker that
fails to start beside us writes its old offsets back on exit. Only if Java really ran in between (it
then touched ``<store>/lock``) its changes are adopted, queue by queue.

Writing needs the store's shared lock (byte 0 of ``lock``, see write_lock.py), so that Java does not
run meanwhile. Reading needs no lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.coordination.locks import ProcessLock
from storage.errors import CorruptFileError, StoreNotWritableError
from storage.files.bounded import read_bounded
from storage.files.fs import FileSystem
from storage.format.names import LOCK, OURS
from storage.format.shapes import ShapeError, anything, members, table, text

from .checksummed_json import entry_of, seal
from .config_file import (
    ConfigFile,
    ConfigSource,
    FileIdent,
    LoadedConfig,
    encoded,
    ident_of,
    replace_file,
)
from .consumer_offsets import (
    consumer_offset_file,
    decode_offsets,
    encode_offsets,
)
from .progress_table import VERSION, ProgressTable, QueueProgress

OFFSETS_FILE: Final = "offsets.json"
OFFSETS_LOCK: Final = "offsets.lock"

NEXT: Final = "next"
"""Member of our file's content: the table that counts if Java's file has the checksum NEXT_JAVA
(SHA-256)."""
NEXT_JAVA: Final = "next_java"
_SHAPE: Final = members({}, {NEXT: table(anything), NEXT_JAVA: text})
_REMEDY: Final = (
    "'rmqctl store recover-offsets' puts it together again; or remove it to go on from "
    "Java's config/consumerOffset.json"
)

if TYPE_CHECKING:
    from .progress_rows import KnownRows

ProgressKey = tuple[str, int]
"""``topic@group`` and queue id."""

Moves = dict[ProgressKey, tuple[QueueProgress, QueueProgress]]
"""What a move changed: before and after."""

_Idents = tuple[FileIdent | None, FileIdent | None, int | None]
_LARGE: Final = 32 << 10
"""Bytes of our file from which on only the rows are parsed, as what Java's file had last is half of
it; and they are kept for the next reading."""


class ProgressFile:
    """The offsets of one store. Safe for threads and processes; holds no descriptor open."""

    def __init__(self, root: Path, fs: FileSystem | None = None) -> None:
        self.path = root / OURS / OFFSETS_FILE
        self._root = root
        self._fs = fs or FileSystem()
        self._changing = ProcessLock(root / OURS / OFFSETS_LOCK)
        self._lock = threading.Lock()  # guards the four fields below
        self._table: ProgressTable | None = None
        self._rows: KnownRows | None = None
        self._read_at: _Idents | None = None
        self._exported_at: _Idents | None = None

    def read(self) -> ProgressTable:
        """Give the progress in the files now; the same object while they are unchanged.

        Do not change it. Costs four stats when nothing changed; else the rows of groups that are
        as before are the same objects as before. Raises CorruptFileError and StoreVersionError.
        """
        with self._lock:
            idents, before = self._idents(), self._table
            if before is None:
                large = idents[0] is not None and idents[0].size >= _LARGE
                table = (self._load_known() if large else None) or self._load()
            elif idents != self._read_at:
                table = self._load_known() or self._load()
                table.keep_rows_of(before)
            else:
                return before
            self._table, self._read_at = table, idents
            return table

    def _load_known(self) -> ProgressTable | None:
        """Read our file as far as it has changed; None where it must be read as a whole."""
        if self._rows is None:  # most readers read once
            from .progress_rows import KnownRows

            self._rows = KnownRows()
        try:
            table = self._rows.read(read_bounded(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if table is None or table.lock_mtime_ns != self._lock_mtime_ns():
            return None  # Java has run since: its changes are taken over
        return table

    def commit(
        self, offered: Mapping[ProgressKey, QueueProgress]
    ) -> dict[ProgressKey, QueueProgress]:
        """Merge consumed offsets and give the resulting progress; on the device when this returns.

        A result of a newer generation than the offered one means that the progress was moved: the
        offered offset was dropped, and the consumer must go on from the result's. Blocks for other
        committers. Raises StoreNotWritableError, and nothing has changed then.
        """
        with self._changing_files():
            table = self._load()
            merged = {
                (key, queue_id): table.commit(key, queue_id, progress)
                for (key, queue_id), progress in offered.items()
            }
            self._write(table)
        return merged

    def move(
        self,
        targets: Mapping[ProgressKey, int | None],
        before_write: Callable[[Moves, int | None], int | None] | None = None,
    ) -> Moves:
        """Set progress deliberately, all queues in one step; None forgets it.

        Each moved queue begins a new generation, so commits of consumers that have not read the
        move are dropped. ``before_write`` is called under the lock with the old and new values and
        the change id of the last completed move. It notes them in the journal and gives the new
        change id, or raises, which leaves everything unchanged. On the device when this returns.
        Raises StoreNotWritableError, and nothing has changed then.
        """
        with self._changing_files():
            table = self._load()
            moved = self._load()
            moves: Moves = {}
            for (key, queue_id), offset in targets.items():
                old = table.get(key, queue_id)
                moves[key, queue_id] = (old, moved.move(key, queue_id, offset))
            if before_write is not None:
                change_id = before_write(moves, table.change_id)
                moved.change_id = table.change_id if change_id is None else change_id
            self._write_both(table, moved)
        return moves

    def recover(
        self,
        targets: Mapping[ProgressKey, int | None],
        before_write: Callable[[Moves, int | None], int | None],
    ) -> Moves:
        """As ``move``, where a file cannot be read: damaged content counts as no content.

        Java's ``.bak`` counts as none either; the caller has checked it. The new table is there in
        one step; Java's file is written from it after that.
        """
        with self._changing_files():
            table = self._load_readable()
            moves: Moves = {}
            for (key, queue_id), offset in targets.items():
                old = table.get(key, queue_id)
                moves[key, queue_id] = (old, table.move(key, queue_id, offset))
            change_id = before_write(moves, table.change_id)
            table.change_id = table.change_id if change_id is None else change_id
            self._put(table.entry())
            self._write_java(table)
            self._put(table.entry())
        return moves

    def export(self) -> bool:
        """Bring Java's consumerOffset.json up to date; False if it was.

        Cheap when neither file changed since the last call. Meant for every 5 s
        (flushConsumerOffsetInterval) and for closing. Raises StoreNotWritableError.
        """
        if ident_of(self.path) is None:
            return False  # Java's file itself is authoritative
        with self._lock:
            if self._exported_at is not None and self._exported_at == self._idents():
                return False
        with self._changing_files():
            table = self._load()
            # Java's file first, the note of its content second: after a death in between, its
            # values differ from the noted ones, so they would count as Java's own changes, and they
            # are no older than the table they were made from.
            written = self._write_java(table)
            self._write(table)
            idents = self._idents()
        with self._lock:
            self._exported_at = idents
        return written

    def hurry(self, seconds: float) -> None:
        """Bound waits for other processes, in seconds from now; then WriteLockTimeoutError."""
        self._changing.hurry(seconds)

    # -- under the lock -----------------------------------------------------------------------

    def _changing_files(self) -> FileIO:
        """Give the lock to be held, as ``ProcessLock.held``. Raises StoreNotWritableError."""
        try:
            self._fs.make_dirs(self.path.parent)
            return self._changing.held()
        except OSError as error:
            raise StoreNotWritableError(self.path, error.strerror or str(error)) from error

    def _load(self) -> ProgressTable:
        """Read the file, and Java's if Java has run since; never from a cache."""
        lock_mtime_ns = self._lock_mtime_ns()
        try:
            entry = self._entry()
        except (FileNotFoundError, NotADirectoryError):
            table = ProgressTable(lock_mtime_ns)
            loaded = consumer_offset_file(self._root).load()
            table.adopt(decode_offsets(loaded.document))
            table.doubt = self._doubt(loaded)
            return table
        table = self._table_of(entry)
        table.changed = NEXT in entry  # settled by the next writer
        if table.lock_mtime_ns != lock_mtime_ns:
            loaded = self._load_java()
            # A file that a crash emptied or tore is ignored: it did not delete all progress.
            if loaded.source is not ConfigSource.NONE:
                table.adopt(decode_offsets(loaded.document))
            table.doubt = self._doubt(loaded)
            table.lock_mtime_ns = lock_mtime_ns
            table.changed = True
        return table

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
            raise CorruptFileError(self.path, 0, f"{error} ({_REMEDY})") from None

    def _load_readable(self) -> ProgressTable:
        """Read the readable files as usual, and nothing of damaged ones."""
        try:
            self._table_of(self._entry())
        except (FileNotFoundError, NotADirectoryError):
            table = ProgressTable(self._lock_mtime_ns())
            loaded = self._load_java()
            if loaded.source is ConfigSource.FILE:
                table.adopt(decode_offsets(loaded.document))
            return table
        except CorruptFileError:
            return ProgressTable(self._lock_mtime_ns())
        return self._load()

    def _entry(self) -> dict[str, Any]:
        """Read the content of our file: the table that counts, if a move is under way."""
        while True:
            data = read_bounded(self.path)
            entry = entry_of(data, self.path, VERSION, _SHAPE, remedy=_REMEDY)
            if NEXT not in entry:
                return entry
            if _sum_of(consumer_offset_file(self._root)) == entry.get(NEXT_JAVA):
                return {**entry[NEXT], NEXT: None}
            if read_bounded(self.path) == data:  # else both may have been replaced meanwhile
                return entry

    def _write_both(self, table: ProgressTable, moved: ProgressTable) -> None:
        """Replace one table by the next one, in our file and Java's, in one step."""
        offsets = moved.offsets()
        file = consumer_offset_file(self._root, self._fs)
        document = encode_offsets(self._load_java().document, offsets)
        moved.set_exported(offsets)
        java = _sha256(encoded(document))
        if java != _sum_of(file):
            self._put({**table.entry(), NEXT: moved.entry(), NEXT_JAVA: java})
            try:
                file.save(document)
            except StoreNotWritableError:
                self._put(table.entry())
                raise
        self._put(moved.entry())

    def _write(self, table: ProgressTable) -> None:
        if table.changed:
            self._put(table.entry())
            table.changed = False

    def _put(self, entry: dict[str, Any]) -> None:
        try:
            replace_file(self._fs, self.path, seal(entry))
            self._fs.sync_dir(self.path.parent)
        except OSError as error:
            raise StoreNotWritableError(self.path, error.strerror or str(error)) from error

    def _write_java(self, table: ProgressTable) -> bool:
        offsets = table.offsets()
        loaded = self._load_java()
        written = False
        if decode_offsets(loaded.document) != offsets or loaded.source is ConfigSource.BAK:
            file = consumer_offset_file(self._root, self._fs)
            written = file.save(encode_offsets(loaded.document, offsets))
        table.set_exported(offsets)
        return written

    def _load_java(self) -> LoadedConfig:
        """Read Java's file where we have a table of our own: damage counts as no content."""
        try:
            return consumer_offset_file(self._root, self._fs).load()
        except CorruptFileError:
            return LoadedConfig({}, ConfigSource.NONE, None)

    def _lock_mtime_ns(self) -> int | None:
        ident = ident_of(self._root / LOCK)
        return None if ident is None else ident.mtime_ns

    def _idents(self) -> _Idents:
        java = consumer_offset_file(self._root, self._fs).ident()
        return ident_of(self.path), java, self._lock_mtime_ns()


def _sum_of(file: ConfigFile) -> str:
    """SHA-256 of a file's bytes, "" if there is none."""
    try:
        return _sha256(read_bounded(file.path))
    except CorruptFileError:
        return ""  # never noted as a sum
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _sha256(data: bytes) -> str:
    from hashlib import sha256  # loads a library of 5 MB; a commit does not need it

    return sha256(data).hexdigest()
