"""Offsets to compare: of a group, of a store, of a time."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.errors import NotFound
from storage.configs.journal_changes import Changes
from storage.configs.progress import ProgressFile
from storage.detect import check_is_store

from .committed import by_group
from .observations import sightings

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.readonly import StoreView

    from .committed import Offsets

OffsetByQueue = dict[tuple[str | None, str, int], int | None]
"""(group, topic, queue id) to the offset; group None where a file names none."""


class Side(NamedTuple):
    """One side of a comparison. ``notes`` say what is known of offsets that are None, ``doubt`` why
    none of them may be the last."""

    offsets: OffsetByQueue
    group: str | None = None
    """The group of all these offsets, if there is one."""
    notes: Mapping[tuple[str | None, str, int], str] = MappingProxyType({})
    doubt: str | None = None


def side_of_group(view: "StoreView", broker: "Broker", group: str) -> Side:
    """The offsets of a group. NotFound if it has none."""
    table = broker.consumer_offsets()
    if not any(group == name for name, _ in table):
        raise NotFound(f"group {group} has no progress in {view.root}")
    offsets = {queue: offset for queue, offset in _by_queue(table).items() if queue[0] == group}
    return Side(offsets, group, doubt=view.progress_doubt())


def side_of_store(root: Path) -> Side:
    """The offsets of all groups of a store. Raises StoreNotFoundError and CorruptFileError."""
    check_is_store(root)
    progress = ProgressFile(root).read()
    return Side(_by_queue(by_group(progress.offsets())), doubt=progress.doubt)


def side_at(view: "StoreView", broker: "Broker", timestamp: int, now_ms: int) -> Side:
    """The offsets of all groups at a time (epoch ms), as far as changes and samples tell.

    Without a move an offset only grows between two observations: so it is known exactly where the
    first one after that time equals the last one before it. Else it lay between them, or another
    program moved it.
    """
    now, doubt = _by_queue(broker.consumer_offsets()), view.progress_doubt()
    if timestamp >= now_ms:
        return Side(now, doubt=doubt)
    known = sightings(Changes(view.root))
    offsets: OffsetByQueue = {}
    notes: dict[tuple[str | None, str, int], str] = {}
    for queue in {*now, *known}:
        observed = known.get((queue[0] or "", *queue[1:]), ())
        before = [one for one in observed if one.at <= timestamp]
        after = [one for one in observed if one.at > timestamp]
        least = before[-1].left if before else None
        most = after[0].seen if after else now.get(queue)
        offsets[queue] = least if least == most else None
        if least != most:
            notes[queue] = _between(least, most)
    return Side(offsets, None, notes, doubt)


def _between(least: int | None, most: int | None) -> str:
    """What is known of an offset between two observations; an offset that was lower after them was
    moved by another program, at a time that is not known."""
    if least is None:
        return f"at most {most}"
    if most is None:
        return f"at least {least}, and none later"
    return f"{least} to {most}" if least < most else f"{least}, and {most} later"


def _by_queue(table: "Offsets") -> OffsetByQueue:
    return {
        (group, topic, queue_id): offset
        for (group, topic), queues in table.items()
        for queue_id, offset in queues.items()
    }
