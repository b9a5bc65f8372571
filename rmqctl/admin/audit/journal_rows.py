"""Changes and their authors: the journal as rows, and moves that are not in the journal."""

from collections.abc import Collection, Iterator
from heapq import merge
from typing import TYPE_CHECKING, Final

from broker.validation import check_group, check_topic
from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.offsets.unjournaled_moves import UnjournaledMove, unnoted_moves
from rmqctl.errors import NotFound
from storage.configs.journal import AT_TIMESTAMP, CHANGE_ID, MOVES, PREVIOUS, UNDO_OF
from storage.configs.journal_changes import Change, Changes, Move, moves_of
from storage.errors import CorruptFileError

from .rows import ChangeDetails, ChangeRow, MovedRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from rmqctl.admin.offsets.committed import Offsets
    from storage.readonly import StoreView

_NOW: Final = 1 << 62
_NAMED: Final = frozenset(
    (
        *(CHANGE_ID, AT_TIMESTAMP, "command", "user", "host", "reason", "group", "topic"),
        *("what", "old", "new", MOVES, PREVIOUS, UNDO_OF),
    )
)


def list_changes(view: "StoreView", since: int | None = None) -> Iterator[ChangeRow]:
    """All changes of a store, oldest first; a change of progress has a row for each queue.

    ``since`` leaves out changes of before that time (epoch ms).
    """
    changes = Changes(view.root)
    for change in changes.all:
        if since is not None and change.at_timestamp < since:
            continue
        moves = list(moves_of(change))
        if moves:
            yield from (_move_row(changes, move) for move in moves)
        else:
            yield _setting_row(changes, change)


def history(
    view: "StoreView",
    broker: "Broker",
    groups: Collection[str] = (),
    topics: Collection[str] = (),
    *,
    since: int | None = None,
    warn: Warn = no_warning,
) -> Iterator[ChangeRow]:
    """The moves of progress of groups, oldest first; empty means all groups, all topics.

    Moves that are not in the journal stand at the time when they were first seen. If the offsets
    cannot be read, the journal is still shown and ``warn`` is called. NotFound for an unknown
    group or topic.
    """
    changes = Changes(view.root)
    now: Offsets | None = None
    try:
        now = broker.consumer_offsets()
    except CorruptFileError as error:
        warn(str(error))
    _check(broker, changes, now or {}, groups, topics)
    return _chosen(_moves(changes, now), groups, topics, since)


def describe(view: "StoreView", change_id: int) -> ChangeDetails:
    """One change in full. NotFound if the journal has no such number."""
    changes = Changes(view.root)
    for change in changes.all:
        if change.change_id == change_id:
            return _details(changes, change)
    known = [change.change_id for change in changes.all]
    has = f"it has changes {known[0]} to {known[-1]}" if known else "it is empty"
    raise NotFound(f"the journal of {changes.root} has no change {change_id}: {has}")


def _moves(changes: Changes, now: "Offsets | None") -> Iterator[ChangeRow]:
    unnoted = [_unnoted_row(move) for move in unnoted_moves(changes, now)]
    noted = [_move_row(changes, move) for change in changes.all for move in moves_of(change)]
    # A move that a change found happened before it; one that is found only now is last.
    return merge(
        unnoted, noted, key=lambda row: _NOW if row.at_timestamp is None else row.at_timestamp
    )


def _chosen(
    rows: Iterator[ChangeRow],
    groups: Collection[str],
    topics: Collection[str],
    since: int | None,
) -> Iterator[ChangeRow]:
    for row in rows:
        if (
            (not groups or row.group in groups)
            and (not topics or row.topic in topics)
            and (since is None or row.at_timestamp is None or row.at_timestamp >= since)
        ):
            yield row


def _move_row(changes: Changes, move: Move) -> ChangeRow:
    change = move.change
    return ChangeRow(
        change.change_id,
        change.at_timestamp,
        change.text("command"),
        move.group,
        move.topic,
        move.queue_id,
        move.old,
        move.new,
        change.text("user"),
        change.text("host"),
        change.text("reason"),
        changes.undone_by.get(change.change_id),
        change.applied,
        None,
        None,
        None,
        None,
    )


def _setting_row(changes: Changes, change: Change) -> ChangeRow:
    return ChangeRow(
        change.change_id,
        change.at_timestamp,
        change.text("command"),
        change.text("group"),
        change.text("topic"),
        None,
        None,
        None,
        change.text("user"),
        change.text("host"),
        change.text("reason"),
        changes.undone_by.get(change.change_id),
        change.applied,
        change.text("what"),
        change.entry.get("old"),
        change.entry.get("new"),
        None,
    )


def _unnoted_row(move: UnjournaledMove) -> ChangeRow:
    place = move.place
    return ChangeRow(
        *(None, move.at, None, *place, move.old, move.new),
        *(None, None, None, None, True),
        *(None, None, None, move.note),
    )


def _details(changes: Changes, change: Change) -> ChangeDetails:
    entry = change.entry
    moves = None
    if MOVES in entry:
        moves = [MovedRow(*move.place, move.old, move.new) for move in moves_of(change)]
    undo_of = entry.get(UNDO_OF)
    return ChangeDetails(
        change.change_id,
        change.at_timestamp,
        change.text("command"),
        change.text("user"),
        change.text("host"),
        change.text("reason"),
        change.applied,
        None if undo_of is None else int(undo_of),
        changes.undone_by.get(change.change_id),
        change.text("group"),
        change.text("topic"),
        change.text("what"),
        entry.get("old"),
        entry.get("new"),
        moves,
        {name: value for name, value in entry.items() if name not in _NAMED} or None,
    )


def _check(
    broker: "Broker",
    changes: Changes,
    now: "Offsets",
    groups: Collection[str],
    topics: Collection[str],
) -> None:
    if not groups and not topics:
        return
    moved = {move.place[:2] for change in changes.all for move in moves_of(change)}
    known = {*moved, *now}
    for group in groups:
        if not any(group == name for name, _ in known):
            check_group(group)
            raise NotFound(f"group {group} has neither progress nor a history in {changes.root}")
    topics_known = {*broker.topics(), *(topic for _, topic in known)}
    for topic in topics:
        if topic not in topics_known:
            check_topic(topic)
            raise NotFound(f"topic {topic} does not exist in {changes.root}")
