"""``offset undo``: putting progress back to where it was before a change."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from broker.errors import OffsetChangedError
from rmqctl.audit.journal_entry import MOVES, UNDO_OF, done_moves, undone_by
from rmqctl.errors import NotFound, Refused
from storage.configs.journal import CHANGE_ID, Journal

from .apply import ChangeForm, ChangeRun
from .plan import Describer, Step
from .queues import QueueId, stands
from .reset_targets import ResetTarget
from .rows import DoneMove, PlannedMove

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli

_GENERATION: Final = "generation"


def undo(
    cli: "Cli", broker: "EmbeddedBroker", change_id: int | None, *, no_live: bool = False
) -> None:
    """Take back a change, None: the last one. All its queues, or none.

    What consumers have done since is no obstacle, and the plan shows it; another move is:
    OffsetChangedError (6). NotFound if there is no such change.
    """
    change_run = ChangeRun(cli, broker)
    entries = list(Journal(broker.view.root).entries())
    done = done_moves(entries, change_run.progress.change_id)
    entry = _chosen(entries, done, change_id, broker)
    number = entry[CHANGE_ID]
    later = undone_by(entries, done).get(number)
    if later is not None:
        raise OffsetChangedError(
            f"change {number} has been undone by change {later}; undo that one to have it again"
        )
    steps = _steps(broker, change_run, entry, entries)
    describe = Describer(broker.view, broker.name, cli.now_ms, full=True)
    form = ChangeForm(PlannedMove, describe.planned, DoneMove, describe.done)
    change_run.carry_out(steps, form, no_live=no_live, note={UNDO_OF: number})


def _chosen(
    entries: list[dict[str, Any]],
    done: set[int],
    change_id: int | None,
    broker: "EmbeddedBroker",
) -> dict[str, Any]:
    if change_id is None:
        moved = [entry for entry in entries if MOVES in entry and entry[CHANGE_ID] in done]
        if not moved:
            raise NotFound(f"nobody has moved progress in {broker.view.root}")
        return moved[-1]
    by_id: dict[int, dict[str, Any]] = {entry[CHANGE_ID]: entry for entry in entries}
    if change_id not in by_id:
        raise NotFound(f"there is no change {change_id} in {broker.view.root}")
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
    broker: "EmbeddedBroker",
    change_run: ChangeRun,
    entry: Mapping[str, Any],
    entries: list[dict[str, Any]],
) -> list[Step]:
    moves = {QueueId(move["group"], move["topic"], move["queue_id"]): move for move in entry[MOVES]}
    steps = []
    for stand in stands(broker, change_run.progress, sorted(moves)):
        move = moves[stand.place]
        if stand.generation != move[_GENERATION]:
            raise OffsetChangedError(
                f"{stand.place} has been moved again since change {entry[CHANGE_ID]}"
                f"{_by_whom(stand.place, entry[CHANGE_ID], entries)}; nothing was changed"
            )
        old = move["old"] if (move["old"] or 0) >= 0 else None
        consumed = (stand.offset or 0) - (move["new"] or 0)
        notes = [f"{consumed} consumed since"] if consumed else []
        if old is not None and old < stand.low:
            notes.append(f"messages before {stand.low} are deleted")
        steps.append(Step(stand, ResetTarget(old, "; ".join(notes) or None)))
    return steps


def _by_whom(place: QueueId, change_id: int, entries: list[dict[str, Any]]) -> str:
    later = [
        entry[CHANGE_ID]
        for entry in entries
        if entry[CHANGE_ID] > change_id
        and any(
            (move["group"], move["topic"], move["queue_id"]) == place
            for move in entry.get(MOVES, ())
        )
    ]
    return f" (change {', '.join(map(str, later))})" if later else ", by a Java broker"
