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
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final

from storage.coordination.locks import ProcessLock
from storage.errors import CorruptFileError, StoreNotWritableError
from storage.files.bounded import NO_FILE
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import MAX_LONG

from .config_file import ConfigSource, encoded, ident_of, replace_file
from .consumer_offsets import (
    consumer_offset_file,
    encode_offsets,
)
from .progress_log import (
    CHANGE,
    EXPORTED,
    EXPORTING,
    NEXT_JAVA,
    QUEUES,
    REMEDY,
    SETTLED,
    Changes,
    Place,
    ProgressLog,
    rows_of_changes,
    table_line,
)
from .progress_reader import (
    MARK,
    OFFSETS_FILE,
    OFFSETS_MARK,
    Idents,
    ProgressReader,
    sha256_of,
    sum_of,
)
from .progress_table import NO_PROGRESS, ProgressTable, QueueProgress, merge

__all__ = ["OFFSETS_FILE", "OFFSETS_LOCK", "OFFSETS_MARK", "Moves", "ProgressFile", "ProgressKey"]

OFFSETS_LOCK: Final = "offsets.lock"

ProgressKey = tuple[str, int]
"""``topic@group`` and queue id."""

Moves = dict[ProgressKey, tuple[QueueProgress, QueueProgress]]
"""What a move changed: before and after."""


_Opened = tuple[int, ProgressLog]
"""The descriptor of a log that is written, and what is in it: nothing is added by others while the
lock is held, so that stays right when a thread of readers makes another one."""


class ProgressFile:
    """The offsets of one store. Safe for threads and processes; holds no descriptor open."""

    def __init__(self, root: Path, fs: FileSystem | None = None) -> None:
        self.path = root / OURS / OFFSETS_FILE
        self._root = root
        self._fs = fs or FileSystem()
        self._changing = ProcessLock(root / OURS / OFFSETS_LOCK)
        self._lock = threading.Lock()  # guards all below
        self._reader = ProgressReader(root, self._fs)
        self._distrusted = False
        """A sync of the log failed: what it has may be on no device."""
        self._synced: Place | None = None
        """The last line that was written here: on the device, whichever thread read it first."""
        self._named: tuple[int, str] | None = None
        """The log whose name this process has synced: its inode, which may be used again after it,
        and the sum of its table."""
        self._long_from = 0
        """A log of fewer bytes is not replaced: there was no room when it was tried."""
        self._table: ProgressTable | None = None
        self._by_java = False
        self._read_at: Idents | None = None
        self._exported_at: Idents | None = None

    def read(self) -> ProgressTable:
        """Give the progress in the files now; the same object while they are unchanged.

        Do not change it. Costs five stats when nothing changed; else what was added is read, and
        the rows of groups that are as before are the same objects as before. Raises
        CorruptFileError and StoreVersionError.
        """
        with self._lock:
            idents, before = self._reader.idents(), self._table
            if before is not None and self._read_at is not None:
                same = 4 if self._by_java else 3
                if idents[:same] == self._read_at[:same]:
                    return before
                if idents[1] != self._read_at[1]:
                    self._reader.log = None
            table = self._reader.load()
            if before is not None:
                table.keep_rows_of(before)
            log = self._reader.log
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
            opened = self._open_to_add()
            if opened is None:
                return self._commit_to_table(offered)
            fd, log = opened
            try:
                self._settle_export(opened)
                with self._lock:
                    merged, rows = _merged(log.table, offered)
                if rows:
                    self._add(opened, {QUEUES: rows}, rows)
            finally:
                self._fs.close(fd)
        return merged

    def _commit_to_table(
        self, offered: Mapping[ProgressKey, QueueProgress]
    ) -> dict[ProgressKey, QueueProgress]:
        with self._lock:
            table = self._reader.load()
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
        change id, or raises, which leaves everything unchanged. On the device when this returns,
        unless the device fails once Java's file has its new content: the move holds then, and only
        a power loss may undo it, as a whole. Raises StoreNotWritableError, and CorruptFileError
        where a queue has no next generation; nothing has changed then.
        """
        with self._changing_files():
            with self._lock:
                table = self._reader.load()
            moved = table.copy()
            moves: Moves = {}
            for (key, queue_id), offset in targets.items():
                if not table.is_movable(key, queue_id):
                    raise CorruptFileError(
                        self.path,
                        0,
                        f"queue {queue_id} of {key} has generation {MAX_LONG}, after which there "
                        f"is none ({REMEDY})",
                    )
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
        one step; Java's file is written from it after that. Raises StoreNotWritableError; the table
        may be the new one then, and doing it again is no harm.
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
        if ident_of(self.path) is None and ident_of(self._reader.mark) is None:
            return False  # Java's file itself is authoritative
        with self._lock:
            if self._exported_at is not None and self._exported_at == self._reader.idents():
                return False
        with self._changing_files():
            with self._lock:
                table = self._reader.load()
            # Java's file is written between two lines. After a death in between, the next writer
            # finds the first of them and looks whether the file was written: else its values would
            # count as changes by Java once there are newer ones here and Java has run.
            changed, was_exported = table.changed, table.is_exported
            if not (changed or was_exported):
                self._add_alone({EXPORTING: True})
            written = self._write_java(table)
            if changed or not was_exported:
                self._note_exported(table, changed=changed)
            idents = self._reader.idents()
        with self._lock:
            self._exported_at = idents
        return written

    def hurry(self, seconds: float) -> None:
        """Bound waits for other processes, in seconds from now; then WriteLockTimeoutError."""
        self._changing.hurry(seconds)

    # -- under the lock -----------------------------------------------------------------------

    def _changing_files(self) -> AbstractContextManager[object]:
        """Give the lock to be held, as ``ProcessLock.held``. Raises StoreNotWritableError."""
        try:
            try:
                return self._changing.held()
            except FileNotFoundError:
                self._fs.make_dirs(self.path.parent)
                self._fs.sync_dir(self._root)
                return self._changing.held()
        except OSError as error:
            raise self._not_writable(error) from error

    def _not_writable(self, error: OSError) -> StoreNotWritableError:
        return StoreNotWritableError(self.path, error.strerror or str(error))

    def _open_to_add(self, *, keeps_long: bool = False) -> _Opened | None:
        """Open the log to write at its end, read up to there; None if a table is to be written.

        A log that has become long is replaced first, unless it is kept. Raises
        StoreNotWritableError.
        """
        while True:
            try:
                fd = self._fs.open(self.path, writable=True)
            except OSError as error:
                if error.errno in _NO_LOG:
                    return None
                raise self._not_writable(error) from error
            fit: ProgressLog | None = None
            is_replaced = False
            try:
                with self._lock:
                    log = self._reader.content(fd)
                    if (
                        isinstance(log, ProgressLog)
                        and log.move is None
                        and log.has_numbers
                        and log.table.lock_mtime_ns == self._reader.lock_mtime_ns()
                        and self._reader.is_marked
                        and not self._distrusted
                    ):
                        keeps_long |= log.is_exporting  # a table does not say so
                        is_replaced = not keeps_long and self._replace_long(log)
                        fit = None if is_replaced else log
            finally:
                if fit is None:
                    self._fs.close(fd)
            if not is_replaced:
                return None if fit is None else (fd, fit)

    def _add(self, opened: _Opened, change: Mapping[str, Any], rows: Changes | None = None) -> None:
        """Write a line at the end of the log; on the device when this returns. ``rows``: of a
        commit."""
        fd, log = opened
        with self._lock:
            log.note_synced(self._synced)
            end, size = log.ending.end, log.size
            line = log.line_of(change) if rows is None else log.commit_line(rows)
            named = log.inode, log.table_crc
        fs = self._fs
        try:
            if size != end:
                fs.set_length(fd, end)  # what a killed process left, which was not acknowledged
            try:
                if named != self._named:  # the process that renamed it may have died before this
                    fs.sync_dir(self.path.parent)
                    self._named = named
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
            if log.ending.end == end:  # else a thread that reads was here
                log.note_written(line, rows)
            self._synced = log.place_of(line, end)

    def _replace_long(self, log: ProgressLog) -> bool:
        """Put a table in the place of a log that has become long; the next line syncs its name.
        False if it is short, or there is no room: then the log grows on."""
        if not log.is_long or log.ending.end < self._long_from:
            return False
        line = table_line(log.table, log.ending.n, log.ending.crc)
        try:
            replace_file(self._fs, self.path, line)
        except OSError:
            self._long_from = log.ending.end * 2
            return False
        ident = ident_of(self.path)
        if ident is None or not log.goes_on_in(line, ident.inode):
            self._reader.log = None
        return True

    def _load_readable(self) -> ProgressTable:
        """Read the readable files as usual, and nothing of damaged ones."""
        with self._lock:
            try:
                if self._reader.content() is not None:
                    table = self._reader.load()
                    table.read_exported()
                    return table
            except CorruptFileError:
                return ProgressTable(self._reader.lock_mtime_ns())
        table = ProgressTable(self._reader.lock_mtime_ns())
        loaded = self._reader.load_java()
        if loaded.source is ConfigSource.FILE:
            table.adopt(loaded.made or {})
        return table

    def _write_both(self, table: ProgressTable, moved: ProgressTable, rows: Changes) -> None:
        """Replace one table by the next one, in our file and Java's, in one step."""
        file = consumer_offset_file(self._root, self._fs)
        document = encode_offsets(self._reader.load_java().document, moved.offsets())
        java = sha256_of(encoded(document))
        change: dict[str, Any] = {QUEUES: rows, CHANGE: moved.change_id}
        opened = self._open_to_add()
        if opened is None:
            self._put(table)
            opened = self._open_to_add()
        if opened is None:
            raise StoreNotWritableError(self.path, "another program changes it")
        try:
            self._settle_export(opened)
            if java == sum_of(file):
                self._add(opened, {**change, EXPORTED: True})
                return
            self._add(opened, {**change, NEXT_JAVA: java})
            done: dict[str, Any] = {SETTLED: True, EXPORTED: True}
            try:
                file.save(document)
            except StoreNotWritableError:
                if sum_of(file) != java:
                    self._add(opened, {SETTLED: False})
                    raise
                # Only the sync of the folder failed. After a power loss Java's file may be the old
                # one: it is not noted as exported.
                del done[EXPORTED]
            # Java's file has the move, so it is in force. Without this line the next writer finds
            # that out.
            with suppress(StoreNotWritableError):
                self._add(opened, done)
        finally:
            self._fs.close(opened[0])

    def _note_exported(self, table: ProgressTable, *, changed: bool) -> None:
        """Note that Java's file has the offsets of this table, which differs from our file's if it
        has ``changed``."""
        if changed or not self._add_alone({EXPORTED: True}):
            self._put(table)

    def _add_alone(self, change: Mapping[str, Any]) -> bool:
        """Add a line about Java's file; False where a table is to be written instead."""
        # The next commit replaces a long log: then those who read it since this note have the last
        # line that is in the table, and need not read the table.
        opened = self._open_to_add(keeps_long=True)
        if opened is None:
            return False
        try:
            self._add(opened, change)
        finally:
            self._fs.close(opened[0])
        return True

    def _settle_export(self, opened: _Opened) -> None:
        """Note that Java's file was written by a process that was killed before it noted so."""
        log = opened[1]
        if log.is_exporting and self._reader.has_java(log.table):
            self._add(opened, {EXPORTED: True})

    def _write(self, table: ProgressTable) -> None:
        if table.changed:
            self._put(table)
            table.changed = False

    def _put(self, table: ProgressTable) -> None:
        """Replace the log by a table. The mark comes last: until then an old store is one."""
        with self._lock:
            log = self._reader.log
            n = log.ending.n + 1 if log is not None and log.has_numbers else 1
            self._reader.log = None
        try:
            replace_file(self._fs, self.path, table_line(table, n, None))
            self._fs.sync_dir(self.path.parent)
            if not self._reader.has_mark():
                replace_file(self._fs, self._reader.mark, MARK)
                self._fs.sync_dir(self.path.parent)
        except OSError as error:
            raise self._not_writable(error) from error
        self._distrusted = False

    def _write_java(self, table: ProgressTable) -> bool:
        offsets = table.offsets()
        loaded = self._reader.load_java()
        written = False
        if (loaded.made or {}) != offsets or loaded.source is ConfigSource.BAK:
            file = consumer_offset_file(self._root, self._fs)
            written = file.save(encode_offsets(loaded.document, offsets))
        table.note_exported()
        return written


_NO_LOG: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, *NO_FILE})


def _merged(
    table: ProgressTable, offered: Mapping[ProgressKey, QueueProgress]
) -> tuple[dict[ProgressKey, QueueProgress], Changes]:
    """What holds after a merge, and what of it is not so in the table, which stays as it is."""
    merged: dict[ProgressKey, QueueProgress] = {}
    rows: dict[str, dict[int, QueueProgress]] = {}
    last, row = "", table.queues.get("")
    for place, progress in offered.items():
        key, queue_id = place
        if key != last:
            last, row = key, table.queues.get(key)
        known = NO_PROGRESS if row is None else row.get(queue_id, NO_PROGRESS)
        now = merged[place] = merge(known, progress)
        if now is not known:
            if key not in rows:
                rows[key] = {}
            rows[key][queue_id] = now
    return merged, rows
