"""The rules of progress (ConsumerOffsetManager, ConsumerManageProcessor of 4.9).

What differs from the real broker: an offset never overwrites a larger one of its generation, and
a deliberate move begins a new generation (storage.configs.progress_table).

A commit is on the device when it returns. One that comes with a pull is kept in memory, as in the
real broker, and reaches the device with the next ``persist``, which is called every 5 s. Until then
other processes see it in a file (storage.configs.pending_commits), also if this one was killed:
what it has written there is adopted before its process entry is removed (``adopt``). A power loss
repeats messages of that time, and loses none: the log is synced before a commit that rests on its
last records (``rest_on_log``).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.api.offsets import MAX_OFFSET, OffsetCommit, OffsetQuery, ProgressPastEnd
from broker.errors import BrokerSystemError, NoPermissionError
from broker.tables.shared_table import READ_ONLY
from broker.validation import check_group, check_topic, typed
from storage.configs.consumer_offsets import split_topic_at_group, topic_at_group
from storage.configs.progress_table import ProgressTable, QueueProgress, offsets_in
from storage.errors import CorruptFileError, go_on_without
from storage.format.shapes import MAX_INT, MAX_LONG

if TYPE_CHECKING:
    from pathlib import Path

    from storage.configs.journal import Journal
    from storage.configs.pending_commits import PendingCommits
    from storage.configs.progress import Moves, ProgressFile, ProgressKey
    from storage.readonly import StoreView


_CORRECTION: Final = {
    "command": "correct offset",
    "reason": "the progress lay behind the end of the queue",
}


_COMMITTED: Final = "committed"
_MOVED: Final = "moved"
_CORRECTED: Final = "corrected"


class _NothingToCorrect(Exception):
    """The progress lies within its queue."""


class ConsumerOffsetManager:
    """The progress of all groups of one store, shared with every process that uses it."""

    def __init__(
        self,
        file: ProgressFile,
        *,
        journal: Journal,
        now: Callable[[], int],
        writable: bool,
        notify_moved: Callable[[str, str, list[int]], None] = lambda *_: None,
        processes: Path | None = None,
        process_entry: Callable[[], str | None] = lambda: None,
        log_end: Callable[[], int] = lambda: 0,
        sync_log_to: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Serve the file. ``notify_moved`` gets group, topic and queue ids of what was moved.

        ``processes`` is the folder of process entries, ``process_entry`` the name of ours.
        ``log_end`` and ``sync_log_to`` are those of MessageStore, see ``rest_on_log``.
        """
        self._file = file
        self._journal = journal
        self._now = now
        self._writable = writable
        self._notify_moved = notify_moved
        self._processes = processes
        self._process_entry = process_entry
        self._log_end = log_end
        self._sync_log_to = sync_log_to
        self._lock = threading.Lock()  # guards the three fields below
        self._rests_on = 0
        self._noted: dict[ProgressKey, QueueProgress] = {}
        self._notes: PendingCommits | None = None
        self._keys: dict[tuple[str, str], str] = {}  # of topics and groups that were checked
        self._given = _Given([], [], {})

    def query(self, group: str, topic: str, queue_id: int) -> QueueProgress:
        """Read the progress of a group in a queue, with what processes keep in memory."""
        key = (topic_at_group(topic, group), queue_id)
        # Before the file: what a process is about to remove it has written there.
        shown = self._shown(key)
        known = self._file.read().get(*key)
        with self._lock:
            noted = self._noted.get(key)
        in_file = known
        for progress in shown:
            known = _later(known, progress)
        if self._writable and known != in_file:
            self.rest_on_log()  # what that process sent back may be on no device
        return known if noted is None else _later(known, noted)

    def rest_on_log(self) -> None:
        """Have the next commit sync the log up to its present end first.

        For progress that passes over a message because another record has its place: a retry, a
        dead letter, a half message that was stored again, the end of a transaction. A power loss
        that kept the progress and lost that record would lose the message.
        """
        end = self._log_end()
        with self._lock:
            self._rests_on = max(self._rests_on, end)

    def _commit(
        self, offered: Mapping[ProgressKey, QueueProgress]
    ) -> dict[ProgressKey, QueueProgress]:
        """Commit to the file, after the records that the progress rests on are on the device."""
        end = self._rests_on
        if end:
            self._sync_log_to(end)
            with self._lock:
                if self._rests_on == end:
                    self._rests_on = 0
        return self._file.commit(offered)

    def _shown(self, key: ProgressKey) -> list[QueueProgress]:
        if self._processes is None:
            return []
        from storage.configs.pending_commits import notes_in, read_notes  # most looks need neither

        paths = notes_in(self._processes)
        return [progress for path in paths for _, progress in read_notes(path, key)]

    def adopt(self, processes: Sequence[str]) -> None:
        """Take over what processes that are gone had in memory."""
        if self._processes is None:
            return
        from storage.configs.pending_commits import NOTES_SUFFIX, read_notes

        offered: dict[ProgressKey, QueueProgress] = {}
        for name in processes:
            for key, progress in read_notes(self._processes / (name + NOTES_SUFFIX)):
                known = offered.get(key)
                offered[key] = progress if known is None else _later(known, progress)
        if offered:
            self.rest_on_log()
            self._commit(offered)

    def note(self, group: str, commit: OffsetCommit) -> None:
        """Keep a commit that came with a pull until the next ``persist``."""
        key, progress = self._checked(group, commit)
        with self._lock:
            known = self._noted.get(key)
            if known is not None:
                progress = _later(known, progress)
            self._noted[key] = progress
            if self._notes is None:
                process_entry = self._process_entry()
                if process_entry is None or self._processes is None:
                    return
                from storage.configs.pending_commits import NOTES_SUFFIX, PendingCommits

                self._notes = PendingCommits(self._processes / (process_entry + NOTES_SUFFIX))
            try:
                self._notes.write(key, progress)
            except OSError:  # they see it in 5 s
                import logging  # one message is sent without it

                logging.getLogger("rmqctl.broker").exception(
                    "other processes can not be shown the progress"
                )

    def hurry(self, seconds: float) -> None:
        """Have what waits for other processes end so many seconds from now: all is closed."""
        self._file.hurry(seconds)

    def close(self) -> None:
        """Show nothing more to other processes."""
        with self._lock:
            if self._notes is not None:
                self._notes.close()

    def commit(self, group: str, commits: Sequence[OffsetCommit]) -> list[QueueProgress]:
        """Commit progress; gives what holds now, in the order of ``commits``.

        Blocks for other committers and for the device. Raises InvalidNameError,
        BrokerSystemError for numbers that no reader of the table takes (an offset below 0 or above
        ``MAX_OFFSET``), NoPermissionError on a read-only store, and as MessageStore.flush.
        """
        checked = [self._checked(group, commit) for commit in commits]
        merged = self._commit(dict(checked)) if checked else {}
        return [merged[place] for place, _ in checked]

    def move(
        self,
        group: str,
        targets: Mapping[tuple[str, int], int | None],
        note: Mapping[str, Any] | None = None,
    ) -> Moves:
        """Move progress deliberately: (topic, queue id) to offset, None forgets it. All or nothing.

        The change journal gets an entry first, with ``note``. A commit of before the move does not
        overwrite it; running consumers are notified, in all processes. See
        :func:`broker.offset.offset_move.move_offsets`.
        """
        from .offset_move import move_offsets

        offered: dict[ProgressKey, int | None] = {}
        for (topic, queue_id), offset in targets.items():
            commit = OffsetCommit(topic, queue_id, 0 if offset is None else offset)
            offered[self._checked(group, commit, _MOVED)[0]] = offset
        note = {"command": "move progress"} if note is None else note
        return move_offsets(
            self._file,
            self._journal,
            offered,
            note,
            self._now,
            notify=self._notify_moved,
            processes=self._processes,
            sync_log=lambda: self._sync_log_to(self._log_end()),
        ).moves

    def correct(
        self,
        group: str,
        topic: str,
        queue_id: int,
        max_offset: Callable[[], int],
        found: ProgressPastEnd | None = None,
    ) -> QueueProgress:
        """Move progress that lies after ``max_offset`` back to it; gives what holds then.

        ``found`` is what was found after the end of the queue: it is moved to the end of that time,
        or to ``max_offset`` if that is lower. Within a generation progress never goes back, so it
        lies after that end still. Progress before what was found is another: it is moved only if
        it lies after ``max_offset``. No consumer is notified: the caller is the queue's owner. The
        journal gets an entry. Raises as ``commit``.
        """
        from .offset_move import move_progress

        wanted = OffsetCommit(topic, queue_id, 0)
        if found is not None:
            wanted = OffsetCommit(topic, queue_id, found.end, found.generation)
        key, then = self._checked(group, wanted, _CORRECTED)
        with self._lock:
            noted = self._noted.get(key)

        def still_lower(moves: Moves) -> None:
            known, target = moves[key]
            if noted is not None:
                known = _later(known, noted)
            end = target.offset or 0
            if found is None:
                # Read once more, after the progress: what was stored and consumed since the
                # first time is no error.
                end = max_offset()
            elif known.generation != then.generation:
                raise _NothingToCorrect
            elif not _is_found(known, found):
                end = max(end, max_offset())
            if known.offset is None or known.offset <= end:
                raise _NothingToCorrect

        with suppress(_NothingToCorrect):  # also if it was moved a moment before
            end = max_offset()
            targets = {key: end if found is None else min(end, found.end)}
            move_progress(self._file, self._journal, targets, _CORRECTION, self._now, still_lower)
        return self.query(group, topic, queue_id)

    def table(self, group: str | None = None) -> dict[tuple[str, str], dict[int, int]]:
        """Give the committed offsets: (group, topic) to queue id to offset.

        What Java's file has below 0 is no progress. Do not change the rows: one that is as in the
        call before is the same object.
        """
        with self._lock:
            noted = dict(self._noted)
        known = self._file.read()
        found = self._rows(known)
        if group is not None:
            found = {names: row for names, row in found.items() if names[0] == group}
        for key in {key for key, _ in noted}:
            names, progress, _ = self._with_noted(known, key, noted)
            if names is not None and progress and group in (None, names[0]):
                found[names] = progress
        return found

    def _rows(self, known: ProgressTable) -> dict[tuple[str, str], dict[int, int]]:
        """The rows of the file, made anew where the file's row is another object."""
        before = self._given
        keys, rows = list(known.queues), list(known.queues.values())
        if keys == before.keys:
            found = before.found.copy()
            others = [*compress(range(len(rows)), map(is_not, rows, before.rows))]
        else:
            found, others = {}, [*range(len(rows))]
        for number in others:
            names, progress, has_offsets = _row(keys[number], rows[number])
            earlier = None if names is None else before.found.get(names)
            progress = earlier if earlier == progress and earlier else progress
            if names is not None and has_offsets:
                found[names] = progress
            elif names is not None:
                found.pop(names, None)
        self._given = _Given(keys, rows, found)
        return found.copy()

    def _with_noted(
        self, known: ProgressTable, key: str, noted: Mapping[ProgressKey, QueueProgress]
    ) -> _Row:
        """A row with what this process keeps in memory."""
        queues = dict(known.queues.get(key, {}))
        for (noted_key, queue_id), progress in noted.items():
            if noted_key == key:
                queues[queue_id] = _later(known.get(key, queue_id), progress)
        return _row(key, queues)

    def persist(self) -> None:
        """Write what is kept in memory, and Java's consumerOffset.json. Cheap if nothing changed.

        Raises StoreNotWritableError; nothing is forgotten then.
        """
        if not self._writable:
            return
        with self._lock:
            noted = dict(self._noted)
        if noted:
            self._commit(noted)
            with self._lock:  # only now: wherever this is broken off, nothing is lost
                for key, progress in noted.items():
                    if self._noted.get(key) == progress:
                        del self._noted[key]
        try:
            self._file.export()
        except CorruptFileError as error:
            if noted:
                raise
            # Nothing of this process is lost: a producer does not end as if it had not sent.
            go_on_without(error, "config/consumerOffset.json stays as it is")

    def _checked(
        self, group: str, commit: OffsetCommit, what: str = _COMMITTED
    ) -> tuple[ProgressKey, QueueProgress]:
        key = self._keys.get((commit.topic, group))
        if key is None:
            if not self._writable:
                raise NoPermissionError(READ_ONLY)
            check_group(group)
            check_topic(commit.topic)
            key = self._keys[commit.topic, group] = topic_at_group(commit.topic, group)
        _, queue_id, offset, generation = commit
        if not (
            type(queue_id) is type(offset) is type(generation) is int
            and 0 <= offset <= MAX_OFFSET
            and 0 <= queue_id <= MAX_INT
            and 0 <= generation <= MAX_LONG
        ):
            raise _refusal(group, commit, what)
        return (key, queue_id), QueueProgress(generation, offset)


def _refusal(group: str, commit: OffsetCommit, what: str) -> BrokerSystemError:
    """The error that names the number of a commit, move or correction that is wrong."""
    numbers = (
        ("offset", commit.offset, MAX_OFFSET),
        ("queue id", commit.queue_id, MAX_INT),
        ("generation", commit.generation, MAX_LONG),
    )
    name, number, most = next(
        (name, number, most)
        for name, number, most in numbers
        if type(number) is not int or not 0 <= number <= most
    )
    given = number if type(number) is int else typed(number)
    reason = f"the {name} is {given}; it is a whole number (int) from 0 to {most}"
    if what == _COMMITTED and name == "offset":
        reason += ": commit the next_begin_offset of a pull"
    return BrokerSystemError(
        f"progress of group {group} in queue {commit.queue_id} of topic {commit.topic} "
        f"can not be {what}: {reason}"
    )


class _Given(NamedTuple):
    """What was given to a reader last, and what it was made of."""

    keys: list[str]
    rows: list[dict[int, QueueProgress]]
    found: dict[tuple[str, str], dict[int, int]]


_Row = tuple[tuple[str, str] | None, dict[int, int], bool]
"""Group and topic, None for a key that is none of both; the offsets; whether there are any, also
below 0."""


def _row(key: str, queues: Mapping[int, QueueProgress]) -> _Row:
    parts = split_topic_at_group(key)
    names = None if parts is None else (parts[1], parts[0])
    offsets = offsets_in(queues)
    if min(offsets.values(), default=0) >= 0:
        return names, offsets, bool(offsets)
    return names, {queue_id: at for queue_id, at in offsets.items() if at >= 0}, bool(offsets)


def _is_found(known: QueueProgress, found: ProgressPastEnd) -> bool:
    """Whether progress is what was found past the end, or has gone on from there."""
    if found.progress is None or known.offset is None:
        return False
    return found.end < found.progress <= known.offset


def _later(known: QueueProgress, offered: QueueProgress) -> QueueProgress:
    """Merge two by the rule of the table."""
    if known.generation == offered.generation and None not in (known.offset, offered.offset):
        return max(known, offered)  # each pull of a consumer comes here
    table = ProgressTable()
    table.queues[""] = {0: known}
    return table.commit("", 0, offered)


def offset_query(
    known: QueueProgress, view: StoreView, topic: str, queue_id: int, *, young_bytes: int | None
) -> OffsetQuery:
    """Answer QUERY_CONSUMER_OFFSET: what is stored, else 0 in a young queue, else nothing.

    A queue is young when its first message is still there and lies at most ``young_bytes`` before
    the end of the log; an empty one is, too. None switches the rule off. So a new group reads such
    a queue from its start, whatever it asks for: the real broker's rule, which surprises many.
    """
    if known.offset is not None:
        return OffsetQuery(known.offset, known.generation)
    if young_bytes is not None and is_young(view, topic, queue_id, young_bytes):
        return OffsetQuery(0, known.generation, stored=False)
    return OffsetQuery(None, known.generation, stored=False)


def is_young(view: StoreView, topic: str, queue_id: int, young_bytes: int) -> bool:
    """Tell whether a queue's first message counts as still in memory."""
    if view.min_offset_in_queue(topic, queue_id) > 0:
        return False
    first = view.get_message(topic, queue_id, 0, 1, tags=None).messages
    return not first or view.log_max_offset() - first[0].commitlog_offset <= young_bytes


def memory_bytes(percent: int) -> int:
    """Give a share of the machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * percent // 100
