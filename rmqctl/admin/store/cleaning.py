"""Deletion of expired files, as RocketMQ's cleaning services do it."""

import errno
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rmqctl.admin.changes import Change, Outcome, Warn, no_warning
from rmqctl.admin.next_deletions import ReadersProgress, expired, within
from rmqctl.admin.offsets.committed import offsets_in_force
from rmqctl.admin.writing import OpenWriter, writer_of
from rmqctl.errors import PartlyDone
from storage.clock import now_ms as clock_ms
from storage.configs.journal import Journal
from storage.counted import counted
from storage.errors import StoreNotWritableError, go_on_without
from storage.format.message import LMQ_PREFIX
from storage.format.names import COMMITLOG, file_name, parse_file_name
from storage.retention import HOUR_MS

from .cleaning_levers import levers
from .rows import CleanedFile, CleanedFileDone, FileKind

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView


class Cleaning(Change):
    """A change that deletes expired files: those of the plan, and no younger one."""

    def __init__(
        self,
        view: "StoreView",
        plan: Sequence[CleanedFile],
        readers: ReadersProgress,
        now_ms: int,
        open_writer: OpenWriter | None,
        older_than_ms: int | None = None,
        warn: Warn = no_warning,
    ) -> None:
        self._root = view.root
        self._warn = warn
        self._end = 0
        """The end of the last planned file in the log."""
        if plan:
            last = parse_file_name(plan[-1].file.rpartition("/")[2])
            assert last is not None
            self._end = last + view.config.mapped_file_size_commit_log
        self._now_ms = now_ms
        self._older_than_ms = older_than_ms
        self._open_writer = open_writer or writer_of(view.root)
        unread = sorted({group for row in plan for group in row.unread_by})
        unknown = sorted({group for row in plan for group in row.unknown_for})
        summary = [f"not read by {', '.join(unread)}, which will lose messages"] if unread else []
        note = readers.unknown_note(", ".join(unknown), others_unread=bool(unread))
        if plan and note:
            summary.append(f"whether all of it was read is {note}")
        if plan:
            summary.append("queue and index files that refer only to these are deleted, too")
        else:
            summary += levers(view, now_ms=now_ms).sentences(now_ms)
        reserved_ms = view.config.file_reserved_time_hours * HOUR_MS
        early = older_than_ms is not None and older_than_ms < reserved_ms
        super().__init__(
            CleanedFile,
            plan,
            result_type=CleanedFileDone,
            summary=summary,
            question=f"Delete {len(plan)} file{'s' if len(plan) != 1 else ''} of the log?",
            confirm_name=view.root.resolve().name if early else None,
            entry={"what": "clean", "old": sorted(row.file for row in plan), "new": None},
        )

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Delete as the rows are read. Raises what opening a store for writing raises.

        The journal's entry comes first, or on a full disk once files are gone; PartlyDone if
        there is no room for it even then.
        """
        return Outcome(self._deleted({**note, **self.entry}))

    def _deleted(self, entry: dict[str, Any]) -> Iterator[Any]:
        left = {row.file: row for row in self.plan}
        is_deleted = False
        with self._open_writer() as writer:
            store = writer.store
            assert store is not None
            no_entry = self._note(entry)
            if no_entry is not None and not _is_full(no_entry):
                raise no_entry
            while True:
                cleaned = store.clean(
                    manual=True, reserved_ms=self._older_than_ms, before=self._end
                )
                is_deleted |= bool(cleaned.log_files or cleaned.queue_files or cleaned.index_files)
                if no_entry is not None:
                    no_entry = self._note(entry)
                for name in cleaned.log_files:
                    row = left.pop(name, None)
                    yield CleanedFileDone(*(row or _unplanned(name, FileKind.LOG)), True)
                for name in cleaned.queue_files:
                    yield CleanedFileDone(*_unplanned(name, FileKind.QUEUE), True)
                for name in cleaned.index_files:
                    yield CleanedFileDone(*_unplanned(name, FileKind.INDEX), True)
                if not cleaned.log_files:
                    break
        for error in cleaned.damaged:
            go_on_without(error, "it stays, and the files after it, too")
        if cleaned.left:
            more = counted(cleaned.left, "more file")
            are, them = ("is", "it") if cleaned.left == 1 else ("are", "them")
            self._warn(
                f"{more} of the log {are} old enough now, but not part of the plan; run the "
                f"command again to see {them}"
            )
        for row in left.values():
            yield CleanedFileDone(*row, not (self._root / row.file).exists())
        if no_entry is not None:
            if not is_deleted:
                raise no_entry
            raise PartlyDone(
                f"the files were deleted, but without an entry in the journal: {no_entry}"
            ) from no_entry

    def _note(self, entry: dict[str, Any]) -> StoreNotWritableError | None:
        """Write the journal's entry; gives why that failed."""
        try:
            Journal(self._root).append(entry, self._now_ms)
        except StoreNotWritableError as error:
            return error
        return None


def clean(
    view: "StoreView",
    broker: "Broker",
    *,
    older_than_ms: int | None = None,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    open_writer: OpenWriter | None = None,
) -> Cleaning:
    """Delete expired log files, and the queue and index files that belong to them.

    Expired is what was not written for fileReservedTime, or for ``older_than_ms``, whether read or
    not; never the newest file. With a shorter age than fileReservedTime, the name of the store's
    folder has to be confirmed. Rows are CleanedFile, then CleanedFileDone.
    """
    now = clock_ms() if now_ms is None else now_ms
    readers = ReadersProgress(view, offsets_in_force(view, broker, warn).table)
    plan = _plan(view, readers, now, older_than_ms)
    return Cleaning(view, plan, readers, now, open_writer, older_than_ms, warn)


def _plan(
    view: "StoreView", readers: ReadersProgress, now_ms: int, older_than_ms: int | None
) -> list[CleanedFile]:
    size = view.config.mapped_file_size_commit_log
    rows = []
    for file in expired(view, now_ms, older_than_ms):
        path = view.root / COMMITLOG / file_name(file.first)
        status = path.stat()
        ends: dict[str, dict[int, int]] = {}
        messages = 0
        for topic, queue_id, begin, end in within(view, file.first, file.first + size):
            if not topic.startswith(LMQ_PREFIX):  # else it is in the queue of its own topic, too
                messages += end - begin
            ends.setdefault(topic, {})[queue_id] = end
        groups = readers.not_read(ends)
        rows.append(
            CleanedFile(
                f"{COMMITLOG}/{path.name}",
                FileKind.LOG,
                status.st_blocks * 512,
                status.st_mtime_ns // 1_000_000,
                messages,
                groups.unread,
                groups.unknown,
            )
        )
    return rows


def _is_full(error: StoreNotWritableError) -> bool:
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _unplanned(name: str, kind: FileKind) -> CleanedFile:
    return CleanedFile(name, kind, None, None, None, [], [])
