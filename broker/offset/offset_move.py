"""Moving offsets deliberately: one order of steps for every caller.

:func:`move_offsets` does these steps:

1. Hold ``lock``, which keeps a Java broker out and other processes away from config files.
2. Call ``before``: last refusals, and copies of files that are about to be replaced.
3. Take over pending commits (storage.configs.pending_commits), so that the journal's old values
   are the offsets that groups really had, and an undo brings back those. The log is synced before:
   they may pass over messages whose retries are its last records.
4. Under the lock of offsets: ``check``, the journal's entry, our file and Java's.
5. Release ``lock`` and notify running consumers, which go on from the new offsets.

A death before step 4 ends leaves all queues as they were, or all of them moved. The journal's entry
names the change that was in force before, and the file of offsets the one that is in force now: so
the journal tells which moves were done, also after a kill between the two writes.

    caller (move_offsets_of_store,       leaves out
    but the last one)
    rmqctl.admin.offsets.move            nothing
    rmqctl.admin.store.offset_recovery   3: a file that cannot be read cannot take a commit; a
                                         commit of before the move does not count after it
    rmqctl.admin.groups.deletion         2: it has no file to keep
    rmqctl.admin.topics.deletion         1: it holds the store alone, which includes this lock; 2
    ConsumerOffsetManager.move           1: its process has the store open for writing, which keeps
                                         Java out, and step 4 keeps other processes apart; 2

Two callers need step 4 alone, :func:`move_progress`. ConsumerOffsetManager.correct is called by the
queue's owner, which reads the answer. ``store repair`` holds the store alone, so that no consumer
runs, and writes where a file cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.pending_commits import notes_in, read_notes

if TYPE_CHECKING:
    from pathlib import Path

    from storage.configs.journal import Journal
    from storage.configs.progress import Moves, ProgressFile, ProgressKey
    from storage.configs.progress_table import ProgressTable


class MovedOffsets(NamedTuple):
    """What was moved: the journal's number of the change, and the values before and after."""

    change_id: int
    moves: Moves


def move_offsets(
    file: ProgressFile,
    journal: Journal,
    targets: Mapping[ProgressKey, int | None],
    note: Mapping[str, Any],
    now: Callable[[], int],
    *,
    notify: Callable[[str, str, list[int]], None],
    processes: Path | None,
    sync_log: Callable[[], None],
    lock: AbstractContextManager[Any] | None = None,
    before: Callable[[], None] | None = None,
    check: Callable[[Moves], None] | None = None,
    damaged: bool = False,
) -> MovedOffsets:
    """Move offsets, None forgets one; all or nothing, on the device when this returns.

    ``notify`` gets group, topic and queue ids, once for each group and topic. ``processes`` is the
    folder with the pending commits of processes, None for no such folder; ``sync_log`` is called
    before such commits count. ``before`` and ``check`` may refuse by raising. For ``check``,
    ``note``, ``now``, ``damaged`` and errors see :func:`move_progress`. The lock raises
    StoreInUseError for a Java broker, and WriteLockTimeoutError. After any error nothing has
    changed, but with ``damaged``.
    """
    with nullcontext() if lock is None else lock:
        if before is not None:
            before()
        if processes is not None and not damaged:
            take_over_pending_commits(file, processes, sync_log)
        moved = move_progress(file, journal, targets, note, now, check, damaged=damaged)
    queues: dict[tuple[str, str], list[int]] = {}
    for key, queue_id in targets:
        topic, group = split_topic_at_group(key) or (key, "")
        queues.setdefault((group, topic), []).append(queue_id)
    for (group, topic), queue_ids in sorted(queues.items()):
        with suppress(OSError):  # a consumer without the notice learns it with its next commit
            notify(group, topic, sorted(queue_ids))
    return moved


def move_offsets_of_store(
    root: Path,
    targets: Mapping[ProgressKey, int | None],
    note: Mapping[str, Any],
    now: Callable[[], int],
    *,
    before: Callable[[], None] | None = None,
    check: Callable[[Moves], None] | None = None,
    damaged: bool = False,
    alone: bool = False,
) -> MovedOffsets:
    """Move offsets of the store at ``root``, which this process need not have open.

    ``alone``: the caller holds the store alone (storage.coordination.exclusive), and step 1 is left
    out. Else as :func:`move_offsets`. Blocks up to 10 s for the lock.
    """
    from broker.members.notices import tell_reset
    from storage.append.flush import sync_newest_log_files
    from storage.configs.journal import Journal
    from storage.configs.progress import ProgressFile
    from storage.coordination.config_lock import config_lock

    def notify(group: str, topic: str, queue_ids: list[int]) -> None:
        tell_reset(root, group, topic, queue_ids)

    return move_offsets(
        ProgressFile(root),
        Journal(root),
        targets,
        note,
        now,
        notify=notify,
        processes=processes_folder(root),
        sync_log=partial(sync_newest_log_files, root),
        lock=None if alone else config_lock(root),
        before=before,
        check=check,
        damaged=damaged,
    )


def processes_folder(root: Path) -> Path:
    """The folder in which processes keep their pending commits."""
    from storage.format.names import MEMBERS_FOLDER, OURS

    return root / OURS / MEMBERS_FOLDER


def take_over_pending_commits(
    file: ProgressFile, processes: Path, sync_log: Callable[[], None]
) -> None:
    """Commit what processes have in memory, of living ones and of dead ones; ``sync_log`` comes
    before."""
    offers = [dict(read_notes(path)) for path in notes_in(processes)]
    if any(offers):
        sync_log()
    for offered in offers:
        if offered:
            file.commit(offered)


def progress_now(root: Path) -> ProgressTable:
    """Read the offsets that hold now, pending commits of processes included. Changes nothing."""
    from storage.configs.progress import ProgressFile

    shown = [note for path in notes_in(processes_folder(root)) for note in read_notes(path)]
    table = ProgressFile(root).read().copy()
    for (key, queue_id), progress in shown:
        table.commit(key, queue_id, progress)
    return table


def offsets_now(root: Path) -> dict[tuple[str, str], dict[int, int]]:
    """Give the same as Broker.consumer_offsets: by group and topic, without those that have
    none."""
    found = {}
    for key, queues in progress_now(root).known_offsets().items():
        parts = split_topic_at_group(key)
        if parts is not None and queues:
            found[parts[1], parts[0]] = queues
    return found


def move_progress(
    file: ProgressFile,
    journal: Journal,
    targets: Mapping[ProgressKey, int | None],
    note: Mapping[str, Any],
    now: Callable[[], int],
    check: Callable[[Moves], None] | None = None,
    *,
    damaged: bool = False,
) -> MovedOffsets:
    """Do step 4: check, write the journal's entry, write both files; on the device then.

    ``check`` is called under the lock of offsets with the values before and after, and may refuse
    by raising. ``note`` becomes the journal's entry, with ``moves`` and ``previous``; ``now`` gives
    its time in epoch ms. ``damaged`` writes also where a file cannot be read, whose content is
    lost then (ProgressFile.recover). Blocks for other processes that commit. Raises
    StoreNotWritableError, and nothing has changed then; with ``damaged`` the progress may have.
    """
    change_id = 0

    def before_write(moves: Moves, previous: int | None) -> int:
        nonlocal change_id
        if check is not None:
            check(moves)
        entry = {**note, "moves": [_line(*move) for move in moves.items()], "previous": previous}
        change_id = journal.append(entry, now())
        return change_id

    move = file.recover if damaged else file.move
    moves = move(targets, before_write)
    return MovedOffsets(change_id, moves)


def _line(key: ProgressKey, move: Any) -> dict[str, Any]:
    old, new = move
    topic, group = split_topic_at_group(key[0]) or (key[0], "")
    line = {"group": group, "topic": topic, "queue_id": key[1]}
    return {**line, "old": old.offset, "new": new.offset, "generation": new.generation}
