"""Committed offsets, from wherever a store still has them."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.errors import NotFound
from storage.configs.config_file import ConfigFile, ConfigSource
from storage.configs.consumer_offsets import (
    OffsetTable,
    consumer_offset_file,
    decode_offsets,
    split_topic_at_group,
)
from storage.configs.progress import OFFSETS_FILE
from storage.errors import CorruptFileError
from storage.format.names import OURS

from .inspect_rows import OffsetSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.audit.changes import Move
    from storage.configs.topics import TopicConfig

Offsets = Mapping[tuple[str, str], Mapping[int, int]]
"""(group, topic) to queue id to the next offset to consume."""


class CommittedOffsets(NamedTuple):
    """What groups have committed, where that was read, and the topics that there are."""

    table: Offsets
    source: OffsetSource
    topics: "Mapping[str, TopicConfig]"
    doubts: Mapping[tuple[str, str, int], str] = MappingProxyType({})
    """Of queues where nobody knows what was committed: between what it lay."""


def committed_offsets(
    broker: "EmbeddedBroker",
    source: OffsetSource,
    moves: "Callable[[], Iterable[Move]]",
    warn: "Callable[[str], None]",
) -> CommittedOffsets:
    """Read the offsets. ``moves`` gives those of the journal, oldest first.

    NotFound if there is no such file; CorruptFileError if it says nothing. For ``warn`` see
    :func:`offsets_in_force`.
    """
    root = broker.view.root
    if source is OffsetSource.BAK:
        return CommittedOffsets(_of_bak(root), source, _topics(broker, warn))
    if source is OffsetSource.JOURNAL:
        return CommittedOffsets(_of_journal(root, moves()), source, _topics(broker, warn))
    return offsets_in_force(broker, warn)


def offsets_in_force(broker: "EmbeddedBroker", warn: "Callable[[str], None]") -> CommittedOffsets:
    """Read the offsets that hold. Raises CorruptFileError.

    Java's file is replaced by its ``.bak`` if it is damaged, as Java does; ``warn`` is told then.
    It is also told of a topics file that can not be read; queues are known by their folders then.
    """
    root = broker.view.root
    topics = _topics(broker, warn)
    doubt = broker.view.progress_doubt()
    if doubt is not None:
        warn(doubt)
    if (root / OURS / OFFSETS_FILE).exists():
        return CommittedOffsets(broker.consumer_offsets(), OffsetSource.FILE, topics)
    file = consumer_offset_file(root)
    loaded = file.load()  # without a truth of our own it is Java's file
    table = by_group(decode_offsets(loaded.document))
    if loaded.source is not ConfigSource.BAK:
        return CommittedOffsets(table, OffsetSource.FILE, topics)
    return CommittedOffsets(table, OffsetSource.BAK, topics)


def _topics(broker: "EmbeddedBroker", warn: "Callable[[str], None]") -> "Mapping[str, TopicConfig]":
    try:
        return broker.topics()
    except CorruptFileError as error:
        warn(f"{error}; queues are known by their folders alone")
        return {}


def by_group(table: OffsetTable) -> Offsets:
    """Offsets of ``topic@group``, sorted; without keys of another form and offsets below 0."""
    found = {}
    for key, offsets in table.items():
        parts = split_topic_at_group(key)
        if parts is not None and offsets:
            found[parts[1], parts[0]] = {
                queue_id: offset for queue_id, offset in sorted(offsets.items()) if offset >= 0
            }
    return found


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
