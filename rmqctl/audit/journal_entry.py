"""What an entry of the change journal says, whoever writes it (storage.configs.journal).

    change_id, at_timestamp    set by the journal: 1, 2, ... and epoch ms
    command                    as typed, without options: "offset reset", "broker config set"
    user, host                 who, on which machine
    reason                     of --reason; absent without it
    undo_of                    change id of the change that this one takes back; else absent

and about what was changed, as far as it applies:

    group, topic               the one that it is about
    what                       a setting's name, an action ("redrive", "ack") ...
    old, new                   values before and after: a number, a text, or an object of settings;
                               null where there was or is nothing
    moves                      progress: a list of {group, topic, queue_id, old, new, generation}
                               with queue offsets, null for none, and the generation that the move
                               began; then the fields above are absent
    previous                   with ``moves``: the change id of the move that was in force before

An entry is on the device *before* what it tells of is done. Whether a move was done after all is
answered by :func:`done_moves`; everything else is done under the lock that it was noted under.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from storage.configs.journal import CHANGE_ID

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

MOVES: Final = "moves"
PREVIOUS: Final = "previous"
UNDO_OF: Final = "undo_of"


def change_note(
    cli: "Cli",
    *,
    group: str | None = None,
    topic: str | None = None,
    what: str | None = None,
    undo_of: int | None = None,
) -> dict[str, Any]:
    """The fields that every entry begins with; those that are None are left out."""
    note: dict[str, Any] = {"command": cli.command_path.removeprefix("rmqctl ").strip()}
    note.update(cli.note())
    more = {UNDO_OF: undo_of, "group": group, "topic": topic, "what": what}
    note.update((name, value) for name, value in more.items() if value is not None)
    return note


def done_moves(entries: Iterable[Mapping[str, Any]], in_force: int | None) -> set[int]:
    """Which changes of progress were done: whoever was killed before the write was not.

    ``in_force`` is the change that the progress file names as its last one. Each later change names
    the one that it found, so all that were ever done are named by somebody.
    """
    done = {entry[PREVIOUS] for entry in entries if entry.get(PREVIOUS) is not None}
    return done if in_force is None else done | {in_force}


def undone_by(entries: Iterable[Mapping[str, Any]], done: set[int]) -> dict[int, int]:
    """Which change took which one back, by change id; undoings that were not done do not count."""
    return {
        entry[UNDO_OF]: entry[CHANGE_ID]
        for entry in entries
        if entry.get(UNDO_OF) is not None and (MOVES not in entry or entry[CHANGE_ID] in done)
    }
