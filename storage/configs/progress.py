"""The authoritative progress of groups: ``<store>/rmqctl/offsets.log``.

Many processes commit. Each change is one sequence under ``rmqctl/offsets.lock``:

    read what others have added -> merge -> write a line at the end, sync -> acknowledge

so a comparison never uses an old value, and a commit costs what it changes. A log that has become
long is replaced by its table (temporary file, sync, rename, sync of the folder). The form of the
log, and what a crash leaves at its end, is in progress_log.

``rmqctl/offsets.json`` was the file of progress up to version 1. Now it is a mark of version 2,
with which an older rmqctl refuses to read or write progress. Where it has a table, that is the
progress, whether there is a log or not: the first change makes a log of it, and the mark last.

Java's consumerOffset.json is written *from* ours, never the other way round, because a Java broker
that fails to start beside us writes its old offsets back on exit. Only if Java really ran in
between (it then touched ``<store>/lock``) its changes are adopted, queue by queue.

Writing needs the store's shared lock (byte 0 of ``lock``, see write_lock.py), so that Java does not
run meanwhile. Reading needs no lock.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.coordination.locks import ProcessLock
from storage.errors import CorruptFileError, StoreNotWritableError
from storage.files.bounded import NO_FILE, read_bounded, read_with_status
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
from .progress_log import (
    CHANGE,
    EXPORTED,
    NEXT_JAVA,
    QUEUES,
    REMEDY,
    SETTLED,
    Changes,
    ProgressLog,
    rows_of_changes,
    table_line,
)
from .progress_table import VERSION, ProgressTable, QueueProgress

if TYPE_CHECKING:
    from .progress_rows import KnownRows

OFFSETS_FILE: Final = "offsets.log"
OFFSETS_MARK: Final = "offsets.json"
OFFSETS_LOCK: Final = "offsets.lock"
MARK: Final = seal({"version": VERSION, "progress": OFFSETS_FILE})
"""The content of offsets.json beside a log."""

_TABLE_VERSION: Final = 1
"""Of an offsets.json that has a table."""
_NEXT: Final = "next"
"""Member of its content: the table that counts if Java's file has the SHA-256 ``next_java``."""
_TABLE_SHAPE: Final = members({}, {_NEXT: table(anything), NEXT_JAVA: text})

ProgressKey = tuple[str, int]
"""``topic@group`` and queue id."""

Moves = dict[ProgressKey, tuple[QueueProgress, QueueProgress]]
"""What a move changed: before and after."""

_Idents = tuple[FileIdent | None, FileIdent | None, int | None, FileIdent | None]


class ProgressFile:
    """The offsets of one store. Safe for threads and processes; holds no descriptor open."""

    def __init__(self, root: Path, fs: FileSystem | None = None) -> None:
        self.path = root / OURS / OFFSETS_FILE
        self._mark = root / OURS / OFFSETS_MARK
        self._root = root
        self._fs = fs or FileSystem()
        self._changing = ProcessLock(root / OURS / OFFSETS_LOCK)
        self._lock = threading.Lock()  # guards all below
        self._log: ProgressLog | None = None
        self._rows: KnownRows | None = None
        self._is_marked = False
        self._distrusted = False
        """A sync of the log failed: what it has may be on no device."""
        self._long_from = 0
        """A log of fewer bytes is not replaced: there was no room when it was tried."""
        self._table: ProgressTable | None = None
        self._by_java = False
        self._read_at: _Idents | None = None
        self._exported_at: _Idents | None = None

    def read(self) -> ProgressTable:
        """Give the progress in the files now; the same object while they are unchanged.

        Do not change it. Costs five stats when nothing changed; else what was added is read, and
        the rows of groups that are as before are the same objects as before. Raises
        CorruptFileError and StoreVersionError.
        """
        with self._lock:
            idents, before = self._idents(), self._table
            if before is not None and self._read_at is not None:
                same = 4 if self._by_java else 3
                if idents[:same] == self._read_at[:same]:
                    return before
                if idents[1] != self._read_at[1]:
                    self._log = None
            table = self._load()
            if before is not None:
                table.keep_rows_of(before)
            log = self._log
            self._by_java = (
                log is None or log.move is not None or log.table.lock_mtime_ns != idents[2]
            )
            self._table, self._read_at = table, idents
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
            fd = self._open_to_add()
            if fd < 0:
                return self._commit_to_table(offered)
            try:
                with self._lock:
                    log = self._log
                    assert log is not None
                    merged, rows = _merged(log.table, offered)
                if rows:
                    self._add(fd, {QUEUES: rows}, rows)
            finally:
                self._fs.close(fd)
        return merged

    def _commit_to_table(
        self, offered: Mapping[ProgressKey, QueueProgress]
    ) -> dict[ProgressKey, QueueProgress]:
        with self._lock:
            table = self._load()
        merged, rows = _merged(table, offered)
        for key, row in rows.items():
            for queue_id, progress in row.items():
                table.put(key, queue_id, progress)
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
            with self._lock:
                table = self._load()
            moved = table.copy()
            moves: Moves = {}
            for (key, queue_id), offset in targets.items():
                old = table.get(key, queue_id)
                moves[key, queue_id] = (old, moved.move(key, queue_id, offset))
            if before_write is not None:
                change_id = before_write(moves, table.change_id)
                moved.change_id = table.change_id if change_id is None else change_id
            rows = rows_of_changes({place: new for place, (_, new) in moves.items()})
            self._write_both(table, moved, rows)
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
            self._put(table)
            self._write_java(table)
            self._put(table)
        return moves

    def export(self) -> bool:
        """Bring Java's consumerOffset.json up to date; False if it was.

        Cheap when neither file changed since the last call. Meant for every 5 s
        (flushConsumerOffsetInterval) and for closing. Raises StoreNotWritableError.
        """
        if ident_of(self.path) is None and ident_of(self._mark) is None:
            return False  # Java's file itself is authoritative
        with self._lock:
            if self._exported_at is not None and self._exported_at == self._idents():
                return False
        with self._changing_files():
            with self._lock:
                table = self._load()
            # Java's file first, the note of its content second: after a death in between, its
            # values differ from the noted ones, so they would count as Java's own changes, and they
            # are no older than the table they were made from.
            changed, was_exported = table.changed, table.is_exported
            written = self._write_java(table)
            if changed or not was_exported:
                self._note_exported(table, changed=changed)
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
            raise self._not_writable(error) from error

    def _not_writable(self, error: OSError) -> StoreNotWritableError:
        return StoreNotWritableError(self.path, error.strerror or str(error))

    def _open_to_add(self) -> int:
        """Open the log to write at its end, read up to there; -1 if a table is to be written.

        A log that has become long is replaced first. Raises StoreNotWritableError.
        """
        while True:
            try:
                fd = self._fs.open(self.path, writable=True)
            except OSError as error:
                if error.errno in _NO_LOG:
                    return -1
                raise self._not_writable(error) from error
            is_fit = is_replaced = False
            try:
                with self._lock:
                    log = self._content(fd)
                    is_fit = (
                        isinstance(log, ProgressLog)
                        and log.move is None
                        and log.table.lock_mtime_ns == self._lock_mtime_ns()
                        and self._is_marked
                        and not self._distrusted
                    )
                    is_replaced = is_fit and self._replace_long()
            finally:
                if not is_fit or is_replaced:
                    self._fs.close(fd)
            if not is_replaced:
                return fd if is_fit else -1

    def _add(self, fd: int, change: Mapping[str, Any], rows: Changes | None = None) -> None:
        """Write a line at the end of the log; on the device when this returns. ``rows``: of a
        commit."""
        with self._lock:
            log = self._log
            assert log is not None
            end, line = log.ending.end, log.line_of(change)
        fs = self._fs
        try:
            if fs.size(fd) != end:
                fs.set_length(fd, end)  # what a killed process left, which was not acknowledged
            try:
                fs.write(fd, line, end)
                fs.sync(fd)
            except BaseException as error:
                self._distrusted |= isinstance(error, OSError)
                with suppress(OSError):
                    fs.set_length(fd, end)
                raise
        except OSError as error:
            raise self._not_writable(error) from error
        with self._lock:
            if self._log is log and log.ending.end == end:  # else a reader was here
                log.note_written(line, rows)

    def _replace_long(self) -> bool:
        """Put a table in the place of a log that has become long. False if it is short, or there is
        no room: then the log grows on."""
        log = self._log
        if log is None or not log.is_long or log.ending.end < self._long_from:
            return False
        line = table_line(log.table, log.ending.n, log.ending.crc)
        try:
            replace_file(self._fs, self.path, line)
            self._fs.sync_dir(self.path.parent)
        except OSError:
            self._long_from = log.ending.end * 2
            return False
        ident = ident_of(self.path)
        if ident is None or not log.goes_on_in(line, ident.inode):
            self._log = None
        return True

    def _load(self) -> ProgressTable:
        """Read the progress, and Java's file if Java has run since. The table is the caller's.

        ``changed``: it is to be written as a whole. Needs ``_lock``.
        """
        lock_mtime_ns = self._lock_mtime_ns()
        content = self._content()
        if content is None:
            table = ProgressTable(lock_mtime_ns)
            loaded = consumer_offset_file(self._root).load()
            table.adopt(decode_offsets(loaded.document))
            table.doubt = self._doubt(loaded)
            return table
        if isinstance(content, ProgressLog):
            table = self._table_of_log(content)
        else:
            table = self._table_of(content)
            table.changed = _NEXT in content  # settled by the next writer
        if table.lock_mtime_ns != lock_mtime_ns:
            loaded = self._load_java()
            # A file that a crash emptied or tore is ignored: it did not delete all progress.
            if loaded.source is not ConfigSource.NONE:
                table.adopt(decode_offsets(loaded.document))
            table.doubt = self._doubt(loaded)
            table.lock_mtime_ns = lock_mtime_ns
            table.changed = True
        return table

    def _content(self, fd: int = -1) -> ProgressLog | dict[str, Any] | None:
        """Read our files as far as they have changed: the log, or the table of an old store; None
        where Java's file is the progress. ``fd`` is the log's, if it is open.

        Raises CorruptFileError and StoreVersionError. Needs ``_lock``.
        """
        known = self._log
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
        self._log = None
        mark, damage = self._read_mark()
        if mark is not None and mark["version"] == _TABLE_VERSION:
            return mark
        self._is_marked = mark is not None
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
            self._log = known
            return known

    def _read_mark(self) -> tuple[dict[str, Any] | None, CorruptFileError | None]:
        """Read offsets.json: the mark, or the table of an old store; and what is wrong with it.

        Raises StoreVersionError.
        """
        while True:
            try:
                data = read_bounded(self._mark)
                if data == MARK:
                    return {"version": VERSION}, None
                entry = entry_of(data, self._mark, VERSION, _TABLE_SHAPE, remedy=_TABLE_REMEDY)
            except (FileNotFoundError, NotADirectoryError):
                return None, None
            except CorruptFileError as error:
                return None, error
            if _NEXT not in entry:
                return entry, None
            if _sum_of(consumer_offset_file(self._root)) == entry.get(NEXT_JAVA):
                return {**entry[_NEXT], "version": entry["version"], _NEXT: None}, None
            if read_bounded(self._mark) == data:  # else both may have been replaced meanwhile
                return entry, None

    def _table_of_log(self, log: ProgressLog) -> ProgressTable:
        """The table of a log; with the move that is under way, if Java's file has it."""
        while (move := log.move) is not None:
            table, n = log.table.copy(), log.ending.n
            if _sum_of(consumer_offset_file(self._root)) == move.next_java:
                table = log.moved()
            elif self._content() is not log or log.ending.n != n:
                return self._load()  # it was settled meanwhile
            table.changed = True
            return table
        return log.table.copy()

    def _known_rows(self) -> KnownRows:
        if self._rows is None:
            from .progress_rows import KnownRows

            self._rows = KnownRows()
        return self._rows

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
            raise CorruptFileError(self._mark, 0, f"{error} ({_TABLE_REMEDY})") from None

    def _load_readable(self) -> ProgressTable:
        """Read the readable files as usual, and nothing of damaged ones."""
        with self._lock:
            try:
                if self._content() is not None:
                    return self._load()
            except CorruptFileError:
                return ProgressTable(self._lock_mtime_ns())
        table = ProgressTable(self._lock_mtime_ns())
        loaded = self._load_java()
        if loaded.source is ConfigSource.FILE:
            table.adopt(decode_offsets(loaded.document))
        return table

    def _write_both(self, table: ProgressTable, moved: ProgressTable, rows: Changes) -> None:
        """Replace one table by the next one, in our file and Java's, in one step."""
        file = consumer_offset_file(self._root, self._fs)
        document = encode_offsets(self._load_java().document, moved.offsets())
        java = _sha256(encoded(document))
        change: dict[str, Any] = {QUEUES: rows, CHANGE: moved.change_id}
        fd = self._open_to_add()
        if fd < 0:
            self._put(table)
            fd = self._open_to_add()
        if fd < 0:
            raise StoreNotWritableError(self.path, "another program changes it")
        try:
            if java == _sum_of(file):
                self._add(fd, {**change, EXPORTED: True})
                return
            self._add(fd, {**change, NEXT_JAVA: java})
            try:
                file.save(document)
            except StoreNotWritableError:
                self._add(fd, {SETTLED: False})
                raise
            self._add(fd, {SETTLED: True, EXPORTED: True})
        finally:
            self._fs.close(fd)

    def _note_exported(self, table: ProgressTable, *, changed: bool) -> None:
        """Note that Java's file has the offsets of this table, which differs from our file's if it
        has ``changed``."""
        fd = -1 if changed else self._open_to_add()
        if fd < 0:
            self._put(table)
            return
        try:
            self._add(fd, {EXPORTED: True})
        finally:
            self._fs.close(fd)

    def _write(self, table: ProgressTable) -> None:
        if table.changed:
            self._put(table)
            table.changed = False

    def _put(self, table: ProgressTable) -> None:
        """Replace the log by a table. The mark comes last: until then an old store is one."""
        with self._lock:
            n = 1 if self._log is None else self._log.ending.n + 1
            self._log = None
        try:
            replace_file(self._fs, self.path, table_line(table, n, None))
            self._fs.sync_dir(self.path.parent)
            if not self._has_mark():
                replace_file(self._fs, self._mark, MARK)
                self._fs.sync_dir(self.path.parent)
        except OSError as error:
            raise self._not_writable(error) from error
        self._distrusted = False

    def _has_mark(self) -> bool:
        try:
            return read_bounded(self._mark) == MARK
        except (FileNotFoundError, CorruptFileError):
            return False

    def _write_java(self, table: ProgressTable) -> bool:
        offsets = table.offsets()
        loaded = self._load_java()
        written = False
        if decode_offsets(loaded.document) != offsets or loaded.source is ConfigSource.BAK:
            file = consumer_offset_file(self._root, self._fs)
            written = file.save(encode_offsets(loaded.document, offsets))
        table.note_exported()
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
        return ident_of(self.path), ident_of(self._mark), self._lock_mtime_ns(), java


_NO_LOG: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, *NO_FILE})
_TABLE_REMEDY: Final = (
    "'rmqctl store recover-offsets' puts it together again; or remove it to go on from "
    "Java's config/consumerOffset.json"
)


def _merged(
    table: ProgressTable, offered: Mapping[ProgressKey, QueueProgress]
) -> tuple[dict[ProgressKey, QueueProgress], Changes]:
    """What holds after a merge, and what of it is not so in the table, which stays as it is."""
    merged: dict[ProgressKey, QueueProgress] = {}
    rows: dict[str, dict[int, QueueProgress]] = {}
    for (key, queue_id), progress in offered.items():
        now = merged[key, queue_id] = table.merged(key, queue_id, progress)
        if now is not table.get(key, queue_id):
            rows.setdefault(key, {})[queue_id] = now
    return merged, rows


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
