"""Putting offsets back to where they were before a change of the journal."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.errors import OffsetChangedError
from rmqctl.admin.changes import JavaCheck, Warn, no_warning
from rmqctl.errors import NotFound, Refused
from storage.configs.journal import CHANGE_ID, MOVES, UNDO_OF, Journal
from storage.configs.journal_changes import done_moves, undone_by

from .change import MoveRows, OffsetMove
from .plan import Describer, Step
from .queues import GroupPosition, QueueId, positions
from .reset_targets import ResetTarget
from .rows import DoneMove, PlannedMove
from .snapshot import OffsetSnapshot

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView

_GENERATION: Final = "generation"


def undo(
    view: "StoreView",
    broker: "Broker",
    change_id: int | None = None,
    *,
    no_live: bool = False,
    now_ms: int | None = None,
    warn: Warn = no_warning,
    java_check: JavaCheck | None = None,
) -> OffsetMove:
    """Take back a change of offsets by its number in the journal, None: the last one.

    All its queues go back, or none. What consumers have done since is no obstacle, and the plan
    shows it; another move since is: OffsetChangedError. NotFound if there is no such change,
    Refused for one that moved no offsets or was never done. Rows are PlannedMove, then with
    ``applied``.
    """
    snapshot = OffsetSnapshot.read(view, broker, now_ms=now_ms, warn=warn, java_check=java_check)
    entries = list(Journal(view.root).entries())
    done = done_moves(entries, snapshot.progress.change_id)
    entry = _chosen(entries, done, change_id, view.root)
    number = entry[CHANGE_ID]
    later = undone_by(entries, done).get(number)
    if later is not None:
        raise OffsetChangedError(
            f"change {number} has been undone by change {later}; undo that one to have it again"
        )
    steps = _steps(snapshot, entry, entries)
    describe = Describer(view, broker.name, snapshot.now_ms, full=True)
    moves = _moves_of(entry)

    def written(step: Step, row: Any, old: int | None, applied: bool | None) -> Any:
        """The row with a note of what was done until the write."""
        position = step.position._replace(offset=old)
        step = step._replace(reset_target=_target(position, moves[position.queue]))
        return describe.done(step, row, old, applied)

    rows = MoveRows(PlannedMove, describe.planned, DoneMove, written)
    return OffsetMove(snapshot, steps, rows, no_live=no_live, entry={UNDO_OF: number})


def _chosen(
    entries: list[dict[str, Any]],
    done: set[int],
    change_id: int | None,
    root: Path,
) -> dict[str, Any]:
    if change_id is None:
        moved = [entry for entry in entries if MOVES in entry and entry[CHANGE_ID] in done]
        if not moved:
            raise NotFound(f"no progress has been moved in {root}")
        return moved[-1]
    by_id: dict[int, dict[str, Any]] = {entry[CHANGE_ID]: entry for entry in entries}
    if change_id not in by_id:
        raise NotFound(f"there is no change {change_id} in {root}")
    entry = by_id[change_id]
    if MOVES not in entry:
        raise Refused(
            f"change {change_id} ({entry.get('command')}) did not move offsets; only such changes "
            "can be undone"
        )
    if change_id not in done:
        raise Refused(f"change {change_id} was noted, but never done: there is nothing to undo")
    return entry


def _steps(
    snapshot: OffsetSnapshot,
    entry: Mapping[str, Any],
    entries: list[dict[str, Any]],
) -> list[Step]:
    moves = _moves_of(entry)
    steps = []
    view, broker, progress = snapshot.view, snapshot.broker, snapshot.progress
    for position in positions(view, broker, progress, sorted(moves)):
        move = moves[position.queue]
        if position.generation != move[_GENERATION]:
            raise OffsetChangedError(
                f"{position.queue} has been moved again since change {entry[CHANGE_ID]}"
                f"{_by_what(position.queue, entry[CHANGE_ID], entries)}; nothing was changed"
            )
        steps.append(Step(position, _target(position, move)))
    return steps


def _moves_of(entry: Mapping[str, Any]) -> dict[QueueId, Mapping[str, Any]]:
    return {QueueId(move["group"], move["topic"], move["queue_id"]): move for move in entry[MOVES]}


def _target(position: GroupPosition, move: Mapping[str, Any]) -> ResetTarget:
    """Where a queue goes back to, with notes."""
    old = move["old"] if (move["old"] or 0) >= 0 else None
    notes = list(_since(position.offset, move["new"]))
    if old is not None and old < position.low:
        notes.append(f"messages before {position.low} are deleted")
    return ResetTarget(old, "; ".join(notes) or None)


def _since(offset: int | None, moved_to: int | None) -> Iterator[str]:
    """What consumers have done since the move. Where one has begun again, it is not known which
    messages it has consumed."""
    if offset is None or offset == moved_to:
        return
    yield "has begun again since" if moved_to is None else f"{offset - moved_to} consumed since"


def _by_what(queue: QueueId, change_id: int, entries: list[dict[str, Any]]) -> str:
    later = [
        entry[CHANGE_ID]
        for entry in entries
        if entry[CHANGE_ID] > change_id
        and any(
            (move["group"], move["topic"], move["queue_id"]) == queue
            for move in entry.get(MOVES, ())
        )
    ]
    return f" (change {', '.join(map(str, later))})" if later else ", by a Java broker"
