"""Committed offsets, from each file of a store that still has them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rmqctl.admin.offsets.committed import (
    CommittedOffsets as CommittedOffsets,
    Offsets as Offsets,
    OffsetSource,
    by_group as by_group,
    offsets_in_force as offsets_in_force,
    topics_of,
)
from rmqctl.errors import NotFound
from storage.configs.config_file import ConfigFile, ConfigSource
from storage.configs.consumer_offsets import consumer_offset_file, decode_offsets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.api.broker import Broker
    from rmqctl.admin.journal import Move
    from storage.readonly import StoreView


def committed_offsets(
    view: "StoreView",
    broker: "Broker",
    source: OffsetSource,
    moves: "Callable[[], Iterable[Move]]",
    warn: "Callable[[str], None]",
) -> CommittedOffsets:
    """Read the offsets. ``moves`` gives those of the journal, oldest first.

    NotFound if there is no such file; CorruptFileError if it says nothing. For ``warn`` see
    :func:`offsets_in_force`.
    """
    root = view.root
    if source is OffsetSource.BAK:
        return CommittedOffsets(_of_bak(root), source, topics_of(broker, warn))
    if source is OffsetSource.JOURNAL:
        return CommittedOffsets(_of_journal(root, moves()), source, topics_of(broker, warn))
    return offsets_in_force(view, broker, warn)


def _of_bak(root: "Path") -> Offsets:
    path = consumer_offset_file(root).bak_path
    loaded = ConfigFile(path, check=decode_offsets).load()
    if loaded.source is ConfigSource.NONE:
        raise NotFound(f"there is no {path}, or it is empty")
    return by_group(decode_offsets(loaded.document))


def _of_journal(root: "Path", moves: "Iterable[Move]") -> Offsets:
    found: dict[tuple[str, str], dict[int, int]] = {}
    empty = True
    for move in moves:
        empty = False
        queues = found.setdefault((move.group, move.topic), {})
        if move.new is None:
            queues.pop(move.queue_id, None)
        else:
            queues[move.queue_id] = move.new
    if empty:
        raise NotFound(f"the journal of {root} has no changes of offsets")
    return {key: queues for key, queues in found.items() if queues}
