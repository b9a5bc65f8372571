"""Moving progress deliberately: checked, noted in the journal, written, in this order.

All under the lock of progress, so that nobody commits or moves in between, and a death leaves all
queues as they were or all of them moved. The entry in the journal names the one that was in force
before, and the progress file the one that is in force now: so the journal tells which moves were
done, also after a kill between the two writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from storage.configs.consumer_offsets import split_topic_at_group

if TYPE_CHECKING:
    from storage.configs.journal import Journal
    from storage.configs.progress import Moves, ProgressFile, ProgressKey


class MovedOffsets(NamedTuple):
    """What was moved: the journal's number of the change, and the values before and after."""

    change_id: int
    moves: Moves


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
    """Move progress, None forgets it; all or nothing, on the device when this returns.

    ``check`` is called under the lock with the values before and after, and may refuse by raising.
    ``note`` becomes the journal's entry, with ``moves`` and ``previous``. ``damaged`` writes also
    where a file can not be read: what it says is lost (ProgressFile.recover). Blocks for others who
    commit. Running consumers still have to be told (broker.members.notices.tell_reset). Raises
    StoreNotWritableError, and nothing has changed then.
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
