"""The changes that the console offers, by the action of their key, and where they work."""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.console.keys import KEYS, WAITING
from rmqctl.console.looks.look import Place, typed_command
from rmqctl.console.screens.table import TABLE
from storage.counted import counted

from .questions import Questions
from .wish import Wish

if TYPE_CHECKING:
    from rmqctl.console.panes import Pane

    from .dead_letters import Letters


class Here(NamedTuple):
    """Where a key was pressed."""

    place: Place
    pane: "Pane"
    """The pane with the cursor."""
    zone: tzinfo | None
    store: str
    """The name of the store's folder."""
    action: str = ""
    """The action of the key."""
    panes: "Sequence[Pane]" = ()
    """All panes of the screen."""

    def rows(self) -> list[Any]:
        """The rows that are marked; without marks the one under the cursor.

        ValueError if a marked row is not shown, or if only rows of another pane are marked.
        """
        if not self.pane.table.marked:
            for other in self.panes:
                if other.table.marked:
                    what = f"what the cursor is on; tab goes to {other.spec.title}"
                    raise ValueError(self._not_these(other, what))
        return marked(self.pane)

    def one(self, name: str, noun: str) -> Any:
        """The value of a field, which the marked rows, else the one under the cursor, have in
        common; None if none of them has one. ValueError if they have several, or some have none."""
        found = {getattr(row, name, None) for row in self.rows()}
        if len(found) > 1:
            raise ValueError(self._not_these(self.pane, f"one {noun}"))
        return next(iter(found), None)

    def one_row(self, noun: str) -> Any:
        """The row that is marked, else the one under the cursor; None without one. ValueError if
        several are marked."""
        rows = self.rows()
        if len(rows) > 1:
            raise ValueError(self._not_these(self.pane, f"one {noun}"))
        return rows[0] if rows else None

    def refuse_marks(self, what: str) -> None:
        """Raise ValueError if rows are marked, as the key is not about them."""
        for pane in (self.pane, *self.panes):
            if pane.table.marked:
                raise ValueError(self._not_these(pane, what))

    def _not_these(self, pane: "Pane", what: str) -> str:
        count = len(pane.table.marked)
        there = f" in {pane.spec.title}" if pane is not self.pane else ""
        label = next((key.label for key in KEYS if key.action == self.action), self.action)
        verb = "is" if count == 1 else "are"
        return f"{counted(count, 'row')} {verb} marked{there}, and {label} plans {what}"

    def group(self) -> str:
        """The group of the marked rows, else of the one under the cursor, else of the screen.
        ValueError without one, or if it is not one."""
        found = self.one("group", "group") or self.named("group")
        if found is None:
            raise ValueError("the cursor is on no group")
        return str(found)

    def named(self, noun: str) -> str | None:
        """The group or the topic that the screen is named for; None if it has no name, or if that
        is the name of something else."""
        first = TABLE[self.place.screen].names[:1]
        return self.place.name if first == (noun.upper(),) else None


Asked = Wish | Questions


def _reset(here: Here) -> Asked:
    from .offsets import Reset

    return Reset(here.group(), _topics(here.rows()), here.zone, here.store)


def _topics(rows: Sequence[Any]) -> list[str]:
    """The queues of rows, as ``--topic`` takes them."""
    from rmqctl.admin.offsets.queues import TopicChoice

    queues: dict[str, list[int]] = {}
    for row in rows:
        topic, queue_id = getattr(row, "topic", None), getattr(row, "queue_id", None)
        if topic is not None:
            queues.setdefault(topic, [])
            if queue_id is not None:
                queues[topic].append(queue_id)
    return [
        str(TopicChoice(topic, tuple(sorted(ids)) if ids else None))
        for topic, ids in queues.items()
    ]


def marked(pane: "Pane") -> list[Any]:
    """The rows that are marked; without marks the one under the cursor.

    ValueError if a marked row is not shown: nothing may be left out that is meant.
    """
    table = pane.table
    rows = [row for row in table.shown if table.key_of(row) in table.marked]
    if len(rows) < len(table.marked):
        many = len(table.marked)
        known = pane.known_rows()
        gone = 0 if known is None else len(table.marked.difference(map(table.key_of, known)))
        if gone:
            shown = set(map(table.key_of, table.shown))
            key = "*" if shown <= table.marked else "* twice"  # the first one marks the others
            raise ValueError(f"{gone} of {many} marked rows are gone; {key} takes all marks off")
        cause = "a filter, or the cursor of another pane?" if pane.by_cursor else "a filter?"
        raise ValueError(f"{many - len(rows)} of {many} marked rows are not shown ({cause})")
    if not rows and (row := pane.row()) is not None:
        rows = [row]
    return rows


def _names(pane: "Pane") -> tuple[str, ...]:
    """The first part of the keys of the rows that are marked, shown or not."""
    return tuple(str(key[0]) for key in sorted(pane.table.marked))


def _undo(here: Here) -> Asked:
    from .offsets import undo

    change_id = here.one("change_id", "change")
    if here.place.screen == "change":
        from rmqctl.console.looks.audit import change_id_of

        change_id = change_id_of(here.place)
    elif change_id is None and any(hasattr(row, "change_id") for row in here.rows()):
        raise ValueError("this move is not in the journal and has no number: it cannot be undone")
    if change_id is None:
        here.refuse_marks("to undo the last change")
    groups = {getattr(row, "group", None) for row in here.rows()}
    return undo(change_id, groups.pop() if change_id and len(groups) == 1 else None, here.store)


def _delete(here: Here) -> str:
    """The command that deletes what the cursor is on; the console offers no such change."""
    noun = here.place.screen.removesuffix("s")
    if noun not in ("group", "topic"):
        raise ValueError("no list of topics or groups is shown; the command is for one of these")
    name = here.one(noun, noun) or here.named(noun)
    if name is None:
        raise ValueError(f"the cursor is on no {noun}")
    return typed_command((noun, "delete", str(name)), [str(name)])


def _redrive(here: Here) -> Asked:
    from .dead_letters import Redrive

    return Redrive(_letters(here))


def _acknowledge(here: Here) -> Asked:
    from .dead_letters import acknowledge

    return acknowledge(_letters(here))


def _letters(here: Here) -> "Letters":
    """The dead letters that are marked or of the group of a value under the cursor."""
    from rmqctl.console.looks.dead_letters import LETTERS

    from .dead_letters import Letters, ids_of

    pane, row = here.pane, here.pane.row()
    if here.place.screen == "letter":
        group, message_id = here.place.names
        return Letters(group, (message_id,))
    if here.place.screen == "dlqs":
        here.one_row("group")
        return Letters(here.group())
    if here.place.screen != "dlq":
        raise ValueError("the cursor is on no dead letter; ':dlq GROUP' shows those of a group")
    group = here.place.name
    if row is not None and hasattr(row, "value") and hasattr(row, "share"):
        words = pane.look.words(pane.place)
        by = words[words.index("--by") + 1] if "--by" in words else "reason"
        return Letters(group, (), by, here.one_row(by).value, here.zone)
    if pane.look is LETTERS and pane.table.marked:  # those that are not shown, too
        return Letters(group, _names(pane), unhandled=True)
    ids = ids_of(here.rows())
    if not ids:
        raise ValueError("the cursor is on no dead letter")
    return Letters(group, ids)


def _now(here: Here) -> Asked:
    return _end_waits(here, dead=False)


def _dead(here: Here) -> Asked:
    return _end_waits(here, dead=True)


def _end_waits(here: Here, *, dead: bool) -> Asked:
    """The retries that are marked, else the one under the cursor."""
    from .retries import end_waits

    if here.place.screen == "retry":
        group, message_id = here.place.names
        return end_waits(group, (message_id,), dead=dead)
    if here.place.screen not in WAITING:
        raise ValueError("the cursor is on no retry; ':retries GROUP' shows those of a group")
    rows = [row for row in here.rows() if hasattr(row, "offset_msg_id")]
    if not rows:
        raise ValueError("the cursor is on no retry; enter shows those of the group")
    groups = {_group_of(row, here) for row in rows}
    if len(groups) > 1:
        raise ValueError("the marked retries are of several groups; mark those of one")
    return end_waits(groups.pop(), tuple(row.offset_msg_id for row in rows), dead=dead)


def _group_of(row: object, here: Here) -> str:
    """The group of a retry; delayed messages have none."""
    from storage.format.message import RETRY_GROUP_TOPIC_PREFIX

    topic = getattr(row, "topic", None)
    if topic is None:
        return here.group()
    if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
        raise ValueError(
            f"it is a delayed message of {topic}; only the wait of a retry can be ended"
        )
    return str(topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX))


def _repair(here: Here) -> Asked:
    from .stores import repair

    return repair(here.store)


def _snapshot(here: Here) -> Asked:
    from .stores import Snapshot

    return Snapshot(here.store)


OFFERED: Final[Mapping[str, Callable[[Here], Asked]]] = {
    "reset": _reset,
    "undo": _undo,
    "redrive": _redrive,
    "acknowledge": _acknowledge,
    "deliver_now": _now,
    "make_dead": _dead,
    "repair": _repair,
    "snapshot": _snapshot,
}
"""What a key asks for, by its action. ValueError says why there is nothing to ask for."""
OF_STORE: Final = frozenset({"repair", "snapshot"})
"""Those that are about no row."""
SHOWN: Final[Mapping[str, Callable[[Here], str]]] = {"delete": _delete}
"""What the console does not do: the command that does it."""
