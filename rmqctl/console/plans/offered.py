"""The changes that the console offers, by the action of their key, and where they work."""

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.console.looks.look import Place

from .questions import Questions
from .wish import Wish

if TYPE_CHECKING:
    from rmqctl.console.panes import Pane


class Here(NamedTuple):
    """Where a key was pressed."""

    place: Place
    pane: "Pane"
    """The pane with the cursor."""
    zone: tzinfo | None
    store: str
    """The name of the store's folder."""

    def group(self) -> str:
        """The group of the row under the cursor, else of the screen. ValueError without one."""
        found = getattr(self.pane.row(), "group", None)
        if found is None and self.place.screen not in ("topic", "topics", "message", "messages"):
            found = self.place.names[0] if self.place.names else None
        if found is None:
            raise ValueError("the cursor is on no group")
        return str(found)


Asked = Wish | Questions


def _reset(here: Here) -> Asked:
    from .offsets import Reset

    return Reset(here.group(), _topics(here.pane), here.zone)


def _topics(pane: "Pane") -> list[str]:
    """The queues that are marked, else the one under the cursor, as ``--topic`` takes them."""
    queues: dict[str, list[int]] = {}
    for row in marked(pane):
        topic, queue_id = getattr(row, "topic", None), getattr(row, "queue_id", None)
        if topic is not None:
            queues.setdefault(topic, [])
            if queue_id is not None:
                queues[topic].append(queue_id)
    return [
        f"{topic}:{','.join(map(str, sorted(ids)))}" if ids else topic
        for topic, ids in queues.items()
    ]


def marked(pane: "Pane") -> list[object]:
    """The rows that are marked and shown; without marks the one under the cursor."""
    table = pane.table
    rows = [row for row in table.shown if table.key_of(row) in table.marked]
    if not rows and (row := pane.row()) is not None:
        rows = [row]
    return rows


def _undo(here: Here) -> Asked:
    from .offsets import undo

    row = here.pane.row()
    change_id = getattr(row, "change_id", None)
    return undo(change_id, getattr(row, "group", None) if change_id else None, here.store)


def _delete(here: Here) -> str:
    """The command that deletes what the cursor is on; the console offers no such change."""
    import shlex

    row, noun = here.pane.row(), here.place.screen.removesuffix("s")
    name = getattr(row, noun, None) or (here.place.names[0] if here.place.names else None)
    if name is None:
        raise ValueError(f"the cursor is on no {noun}")
    return shlex.join(("rmqctl", noun, "delete", str(name)))


OFFERED: Final[Mapping[str, Callable[[Here], Asked]]] = {
    "reset": _reset,
    "undo": _undo,
}
"""What a key asks for, by its action. ValueError says why there is nothing to ask for."""
SHOWN: Final[Mapping[str, Callable[[Here], str]]] = {"delete": _delete}
"""What the console does not do: the command that does it."""
