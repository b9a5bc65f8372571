"""Writing moved progress: nothing but its own file is touched, and running consumers are told.

No recovery, no services: the store is not opened for writing. What is held meanwhile keeps a Java
broker out, and everybody else who replaces a file of settings or commits.
"""

import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.errors import OffsetChangedError
from broker.offset.offset_move import MovedOffsets, move_offsets_of_store, processes_folder
from storage.configs.pending_commits import notes_in, read_notes
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import ProgressTable

from .queues import QueueId, committed

if TYPE_CHECKING:
    from storage.configs.progress import Moves

    from .plan import Step

Check = Callable[["Moves"], None]


def progress_now(root: Path) -> ProgressTable:
    """What holds now, with what consumers have done and not yet written there. Changes nothing."""
    shown = [note for path in notes_in(processes_folder(root)) for note in read_notes(path)]
    table = ProgressTable.from_entry(ProgressFile(root).read().entry())
    for (key, queue_id), progress in shown:
        table.commit(key, queue_id, progress)
    return table


def write_moves(
    root: Path,
    targets: Mapping[QueueId, int | None],
    note: Mapping[str, Any],
    check: Check,
    java_check: Callable[[], None],
) -> MovedOffsets:
    """Move progress of any groups, all or nothing; on the device when this returns.

    Java's consumerOffset.json is moved with it, and whoever runs in the groups is told. Raises
    OffsetChangedError (6), StoreInUseError and StoreNotWritableError (5); nothing has changed then.
    """
    keys = {place.key: offset for place, offset in targets.items()}
    return move_offsets_of_store(root, keys, note, _now_ms, before=java_check, check=check)


def unchanged(steps: "Collection[Step]", live: Collection[str]) -> Check:
    """A check that nobody has moved what the plan was made from.

    Consumers of ``live`` groups go on committing, which is no move; of others nobody should.
    """

    def check(moves: "Moves") -> None:
        for step in steps:
            stand = step.stand
            if step.reset_target.stays:
                continue
            now, _ = moves[stand.place.key]
            offset = committed(now)
            still = offset == stand.offset or stand.place.group in live
            if now.generation != stand.generation or not still:
                raise changed(stand.place, stand.offset, offset)

    return check


def changed(place: QueueId, seen: int | None, now: int | None) -> OffsetChangedError:
    """The error that says that progress is not what was seen."""
    return OffsetChangedError(
        f"{place} was at {_word(seen)} and is at {_word(now)} now; "
        "nothing was changed, look at the plan again"
    )


def members_of(root: Path, groups: Collection[str]) -> dict[str, list[str]]:
    """The ids of the clients that run in some groups, without asking them."""
    from storage.coordination.processes import ProcessEntries

    processes = ProcessEntries(root)
    found: dict[str, list[str]] = {}
    try:
        living = processes.living()
        if not living:
            return found
        # Most stores that are looked at have no members: those do without loading this.
        from broker.members.process_info_json import groups_of

        for said in living:
            for group in groups_of(said) & set(groups):
                clients = said.content["clients"]
                ids = [client["id"] for client in clients if group in client["consumers"]]
                found.setdefault(group, []).extend(ids)
    finally:
        processes.close()
    return found


def _word(offset: int | None) -> str:
    return "no offset" if offset is None else str(offset)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
