"""What is left of topics.json and subscriptionGroup.json, and evidence of their rows in other
files.

  topics     queues: a topic has at least as many as its folders and its progress show
  groups     progress, retry topics and dead letters name them

Settings without evidence get RocketMQ's defaults: those of a topic or group that is made by using
it. Topics and groups that each broker makes at its start are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.configs.config_file import BAK_SUFFIX, MAX_CONFIG_SIZE, JsonObject
from storage.configs.config_table import ConfigTable, DataVersion
from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.deleted_topics import deleted_topics_for_reading
from storage.configs.subscription_groups import (
    SUBSCRIPTION_GROUP_FILE,
    SYSTEM_GROUP_PREFIX,
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    system_groups,
)
from storage.configs.topics import (
    TOPICS_FILE,
    TopicConfig,
    TopicTable,
    queues_with,
    system_topics,
)
from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded
from storage.files.checksum import crc_of
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, LMQ_PREFIX, RETRY_GROUP_TOPIC_PREFIX
from storage.format.names import CONFIG
from storage.format.partial_json import loads_torn

from .progress_files import FileState, read_progress_files

if TYPE_CHECKING:
    from storage.readonly import StoreView

_SYSTEM_TOPICS: Final = frozenset(system_topics("DefaultCluster", "", trace=True))


class Evidence(StrEnum):
    """What a setting was recovered from."""

    FILE = "file"
    """Whole rows of the file."""
    BAK = "bak"
    """Its ``.bak``: the content before its last change."""
    QUEUES = "queues"
    """Folders of queues."""
    OFFSETS = "offsets"
    """Progress of groups."""
    RETRY = "retry"
    """A topic of retries or dead letters."""
    DELIVERED = "delivered"
    """Delayed messages in their target queues."""


class RecoveredSetting(NamedTuple):
    """One row of a file: its name, its JSON, and its evidence."""

    file: str
    name: str
    value: Any
    source: Evidence
    evidence: str


class SalvagedFile(NamedTuple):
    """The new document of a damaged file, and the source of each row."""

    path: Path
    state: FileState
    document: JsonObject
    rows: list[RecoveredSetting]
    crc: int | None
    """Checksum of the damaged file (storage.files.checksum.crc_of): one with another was written
    since."""


class RecoveredTable(NamedTuple):
    """The state of a file, and its objects that are whole."""

    state: FileState
    document: JsonObject
    cut_at: int | None = None

    def rows(self, member: str) -> dict[str, JsonObject]:
        """The whole rows of a table in it."""
        table = self.document.get(member)
        found = table.items() if isinstance(table, dict) else ()
        return {str(name): row for name, row in found if isinstance(row, dict)}


def remains_of(path: Path) -> RecoveredTable:
    """Read the whole parts of a file; a row of a table that was cut in the middle is left out."""
    try:
        data = read_bounded(path, MAX_CONFIG_SIZE)
    except (FileNotFoundError, NotADirectoryError):
        return RecoveredTable(FileState.MISSING, {})
    except CorruptFileError:
        return RecoveredTable(FileState.CUT, {}, 0)
    if not data.strip(b"\0 \t\r\n"):
        return RecoveredTable(FileState.EMPTY, {})
    torn = loads_torn(data.decode("utf-8", "surrogateescape"))
    document: JsonObject = {str(name): value for name, value in torn.document.items()}
    if torn.cut_at is None:
        return RecoveredTable(FileState.WHOLE, document)
    if len(torn.open) > 1:
        table = document.get(str(torn.open[0]))
        if isinstance(table, dict):
            document[str(torn.open[0])] = {
                name: row for name, row in table.items() if name != torn.open[1]
            }
    elif torn.open and torn.open[0] == "dataVersion":
        del document["dataVersion"]
    return RecoveredTable(FileState.CUT, document, torn.cut_at)


def salvage_topics(view: StoreView, now_ms: int) -> SalvagedFile | None:
    """Rebuild topics.json; None if it is undamaged."""
    return _salvage(view.root, TOPICS_FILE, TopicTable, lambda: _topics(view), now_ms)


def salvage_groups(view: StoreView, now_ms: int) -> SalvagedFile | None:
    """Rebuild subscriptionGroup.json; None if it is undamaged."""
    return _salvage(
        view.root, SUBSCRIPTION_GROUP_FILE, SubscriptionGroupTable, lambda: _groups(view), now_ms
    )


def is_lost(path: Path, check: Callable[[JsonObject], object]) -> RecoveredTable | None:
    """What is left of a file whose content is lost, None if it can be read.

    A missing file counts as lost: the evidence shows whether it ever existed.
    """
    left = remains_of(path)
    if left.state is FileState.WHOLE:
        try:
            check(left.document)
        except (ValueError, TypeError, OverflowError):
            return RecoveredTable(FileState.CUT, {}, 0)
        return None
    return left


def _salvage(
    root: Path,
    name: str,
    make: Callable[[JsonObject, int], ConfigTable[Any]],
    known: Callable[[], Iterable[tuple[str, Any, Evidence, str]]],
    now_ms: int,
) -> SalvagedFile | None:
    path = root / CONFIG / name
    crc = crc_of(path)  # before it is read: what is written later is another file
    left = is_lost(path, lambda document: make(document, 0))
    if left is None:
        return None
    bak = remains_of(path.with_name(name + BAK_SUFFIX))
    member = make({}, 0).table_member
    rows: dict[str, RecoveredSetting] = {}
    kept: dict[str, JsonObject] = {}
    for remains, source, file in (
        (left, Evidence.FILE, name),
        (bak, Evidence.BAK, name + BAK_SUFFIX),
    ):
        evidence = f"{CONFIG}/{file}"
        if remains.cut_at is not None:
            evidence += f", whole up to {remains.cut_at}"
        for row_name, row in remains.rows(member).items():
            if row_name not in rows and _readable(make, member, row_name, row):
                kept[row_name] = row
                rows[row_name] = RecoveredSetting(name, row_name, row, source, evidence)
    base = {**_with_version(bak.document), **_with_version(left.document), member: kept}
    table = make(base, now_ms)
    added = {}
    for row_name, config, source, evidence in known():
        if row_name not in rows and row_name not in added:
            added[row_name] = config
            rows[row_name] = RecoveredSetting(name, row_name, None, source, evidence)
    if not rows:
        return None
    table.add_missing(added)
    table.data_version = table.data_version.next_version(now_ms)
    document = table.document()
    members = document[member]
    found = [row._replace(value=members[row.name]) for row in rows.values()]
    return SalvagedFile(path, left.state, document, found, crc)


def _with_version(document: JsonObject) -> JsonObject:
    """A document without a data version that no broker can read."""
    try:
        DataVersion.from_json(document.get("dataVersion"), 0)
    except (ValueError, TypeError, OverflowError):
        return {name: value for name, value in document.items() if name != "dataVersion"}
    return document


def _readable(
    make: Callable[[JsonObject, int], ConfigTable[Any]], member: str, name: str, row: JsonObject
) -> bool:
    try:
        make({member: {name: row}}, 0)
    except (ValueError, TypeError, OverflowError):
        return False
    return True


def _topics(view: StoreView) -> Iterator[tuple[str, TopicConfig, Evidence, str]]:
    queues: dict[str, set[int]] = {}
    for topic, queue_id in view.queues():
        queues.setdefault(topic, set()).add(queue_id)
    in_folders = set(queues)
    for topic, _, queue_ids in _progress(view.root):
        queues.setdefault(topic, set()).update(queue_ids)
    gone = deleted_topics_for_reading(view.root)
    for topic, queue_ids in sorted(queues.items()):
        if topic in _SYSTEM_TOPICS or topic.startswith(LMQ_PREFIX):
            continue
        if topic not in in_folders and topic in gone:
            continue
        count = queues_with(queue_ids)
        source = Evidence.QUEUES if topic in in_folders else Evidence.OFFSETS
        evidence = f"queue {count - 1}"
        yield topic, TopicConfig(topic, count, count), source, evidence


def _groups(view: StoreView) -> Iterator[tuple[str, SubscriptionGroupConfig, Evidence, str]]:
    system = system_groups()
    retries: dict[str, int] = {}
    found: dict[str, tuple[Evidence, str]] = {}
    for topic, group, _ in _progress(view.root):
        found.setdefault(group, (Evidence.OFFSETS, f"progress in {topic}"))
    for topic, queue_id in view.queues():
        for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
            if topic.startswith(prefix):
                group = topic.removeprefix(prefix)
                found.setdefault(group, (Evidence.RETRY, topic))
                if prefix == RETRY_GROUP_TOPIC_PREFIX:
                    retries[group] = max(retries.get(group, 1), queues_with([queue_id]))
    for group, (source, evidence) in sorted(found.items()):
        if group in system or group.startswith((SYSTEM_GROUP_PREFIX, LMQ_PREFIX)) or not group:
            continue
        config = SubscriptionGroupConfig(group, retry_queue_nums=retries.get(group, 1))
        yield group, config, source, evidence


def _progress(root: Path) -> Iterator[tuple[str, str, set[int]]]:
    """Topic, group and queue ids of all progress in any of its files."""
    seen: dict[str, set[int]] = {}
    for file in read_progress_files(root):
        for key, queues in file.offsets.items():
            seen.setdefault(key, set()).update(queues)
    for key, queue_ids in seen.items():
        parts = split_topic_at_group(key)
        if parts is not None and queue_ids:
            yield parts[0], parts[1], queue_ids


def files_to_keep(file: SalvagedFile) -> list[Path]:
    """The damaged file and its ``.bak``, if they exist."""
    both = (file.path, file.path.with_name(file.path.name + BAK_SUFFIX))
    return [path for path in both if os.path.lexists(path)]
