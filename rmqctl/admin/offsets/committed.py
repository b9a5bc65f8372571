"""Committed offsets of all groups: as they hold now, and as each file of a store has them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from broker.validation import check_group, check_topic
from rmqctl.errors import NotFound
from storage.configs.config_file import ConfigFile, ConfigSource
from storage.configs.consumer_offsets import (
    OffsetTable,
    consumer_offset_file,
    decode_offsets,
    split_topic_at_group,
)
from storage.configs.progress import OFFSETS_FILE, OFFSETS_MARK
from storage.errors import CorruptFileError
from storage.format.names import OURS

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.configs.journal_changes import Move
    from storage.configs.topics import TopicConfig
    from storage.readonly import StoreView

Offsets = Mapping[tuple[str, str], Mapping[int, int]]
"""(group, topic) to queue id to the next offset to consume."""


class OffsetSource(StrEnum):
    """Where committed offsets are read; the values of ``--source``."""

    FILE = "file"
    """What holds: rmqctl/offsets.log, or Java's config/consumerOffset.json where rmqctl has
    none."""
    BAK = "bak"
    """config/consumerOffset.json.bak: what Java's file held before its last change."""
    JOURNAL = "journal"
    """Where the last change in the journal put it; consumers have gone on since."""
    SEEN = "seen"
    """With ``--as-of``: what changes and samples saw before and after that time."""


class CommittedOffsets(NamedTuple):
    """What groups have committed, where that was read, and the known topics."""

    table: Offsets
    source: OffsetSource
    topics: "Mapping[str, TopicConfig]"
    doubts: Mapping[tuple[str, str, int], str] = MappingProxyType({})
    """Of queues whose offset is not known exactly: between what it lay."""


def committed_offsets(
    view: "StoreView",
    broker: "Broker",
    source: OffsetSource,
    moves: Callable[[], Iterable["Move"]],
    warn: Callable[[str], None],
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


def offsets_in_force(
    view: "StoreView", broker: "Broker", warn: Callable[[str], object]
) -> CommittedOffsets:
    """Read the offsets that hold. Raises CorruptFileError.

    The ``.bak`` of Java's file stands for that if it is damaged, as in Java. ``warn`` gets that,
    and a topics file that cannot be read: queues are known by their folders then.
    """
    root = view.root
    topics = topics_of(broker, warn)
    doubt = view.progress_doubt()
    if doubt is not None:
        warn(doubt)
    if any((root / OURS / name).exists() for name in (OFFSETS_FILE, OFFSETS_MARK)):
        return CommittedOffsets(broker.consumer_offsets(), OffsetSource.FILE, topics)
    known = view.progress.read()  # without a truth of our own it is what Java's file has
    source = OffsetSource.BAK if known.is_of_bak else OffsetSource.FILE
    return CommittedOffsets(by_group(known.offsets()), source, topics)


def topics_of(broker: "Broker", warn: Callable[[str], object]) -> "Mapping[str, TopicConfig]":
    """The known topics; none, and a warning, where the file of topics cannot be read."""
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


def check_known(
    root: Path,
    known: "CommittedOffsets",
    groups: Collection[str] | None,
    topics: Collection[str] | None,
) -> None:
    """NotFound for a group without progress and for a topic that does not exist."""
    for group in groups or ():
        if not any(group == name for name, _ in known.table):
            check_group(group)
            raise NotFound(f"group {group} has no progress in {root}")
    for topic in topics or ():
        if topic not in known.topics and not any(topic == name for _, name in known.table):
            check_topic(topic)
            raise NotFound(f"topic {topic} does not exist in {root}")


def _of_bak(root: Path) -> Offsets:
    path = consumer_offset_file(root).bak_path
    loaded = ConfigFile(path, check=decode_offsets).load()
    if loaded.source is ConfigSource.NONE:
        raise NotFound(f"there is no {path}, or it is empty")
    return by_group(decode_offsets(loaded.document))


def _of_journal(root: Path, moves: Iterable["Move"]) -> Offsets:
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
