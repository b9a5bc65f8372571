"""The members of an entry of the change journal (storage.configs.journal).

    change_id, at_timestamp    set by the journal: 1, 2, ... and epoch ms
    command                    as typed, without options: "offset reset", "broker config set"
    user, host                 who, on which machine
    reason                     of --reason; absent without it
    undo_of                    change id of the change that this one takes back; else absent

and about what was changed, as far as it applies:

    group, topic               what was changed
    what                       a setting's name, an action ("redrive", "ack", "settle") ...
    old, new                   values before and after: a number, a text, or an object of settings;
                               null where there was or is nothing
    moves                      progress: a list of {group, topic, queue_id, old, new, generation}
                               with queue offsets, null for none, and the generation that the move
                               began; then the fields above are absent
    previous                   with ``moves``: the change id of the move that was in force before

An entry is on the device *before* its change is done. :func:`done_moves` of
storage.configs.journal_changes says whether a move was done after all; every other change is done
under the lock under which its entry was written.
"""

from typing import Any, Protocol

from storage.configs.journal import UNDO_OF

from .changes import journal_note


class Call(Protocol):
    """A call of the program, as far as an entry names it."""

    command_path: str

    @property
    def reason(self) -> str | None:
        """Why it changes something."""
        ...


def change_note(
    cli: Call,
    *,
    group: str | None = None,
    topic: str | None = None,
    what: str | None = None,
    undo_of: int | None = None,
) -> dict[str, Any]:
    """The fields that every entry begins with; those that are None are left out."""
    command = cli.command_path.removeprefix("rmqctl ").strip()
    note: dict[str, Any] = journal_note(command, reason=cli.reason)
    more = {UNDO_OF: undo_of, "group": group, "topic": topic, "what": what}
    note.update((name, value) for name, value in more.items() if value is not None)
    return note
