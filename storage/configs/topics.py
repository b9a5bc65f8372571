"""topics.json: the topics of a broker (TopicConfig, TopicConfigManager of 4.9).

{"dataVersion":{...},"topicConfigTable":{topic -> {order, perm, readQueueNums,
 topicFilterType, topicName, topicSysFlag, writeQueueNums}}}
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from storage.files.fs import FileSystem
from storage.files.queue_folders import queue_ids_of
from storage.format.message import (
    AUTO_CREATE_TOPIC_KEY_TOPIC,
    BENCHMARK_TOPIC,
    OFFSET_MOVED_EVENT,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    TRACE_TOPIC,
)
from storage.format.names import CONFIG
from storage.format.shapes import MAX_QUEUES

from .config_file import JsonObject
from .config_table import ConfigTable, ConfigTableFile, flag, number, queue_count

TOPICS_FILE: Final = "topics.json"

PERM_READ: Final = 4
PERM_WRITE: Final = 2
PERM_INHERIT: Final = 1

SCHEDULE_QUEUES: Final = 18
REPLY_TOPIC_SUFFIX: Final = "_REPLY_TOPIC"


class TopicConfig(NamedTuple):
    """Settings of one topic; the defaults are those of a bare TopicConfig.

    ``perm`` is the sum of PERM_* bits; ``topic_filter_type`` is SINGLE_TAG or MULTI_TAG;
    bit 0 of ``topic_sys_flag`` means a unit, bit 1 a unit with subscriptions.
    """

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = PERM_READ | PERM_WRITE
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False

    @property
    def readable(self) -> bool:
        """Whether consumers may pull."""
        return bool(self.perm & PERM_READ)

    @property
    def writeable(self) -> bool:
        """Whether producers may send."""
        return bool(self.perm & PERM_WRITE)

    @property
    def derived(self) -> bool:
        """Whether these follow from queues on disk, and no file has them: the first send writes
        settings."""
        return not self.write_queue_nums and not self.writeable

    @property
    def inherited(self) -> bool:
        """Whether new topics may take their settings from this one."""
        return bool(self.perm & PERM_INHERIT)


class TopicTable(ConfigTable[TopicConfig]):
    """The topics in a topics.json."""

    table_member = "topicConfigTable"
    queue_counts = MappingProxyType(
        {"readQueueNums": "read_queue_nums", "writeQueueNums": "write_queue_nums"}
    )
    kind = "topic"

    @staticmethod
    def _read(name: str, row: JsonObject) -> TopicConfig:
        default = TopicConfig(name)
        return TopicConfig(
            name,
            queue_count(row, "readQueueNums", default.read_queue_nums),
            queue_count(row, "writeQueueNums", default.write_queue_nums),
            number(row, "perm", default.perm),
            str(row.get("topicFilterType") or default.topic_filter_type),
            number(row, "topicSysFlag", default.topic_sys_flag),
            flag(row, "order", default=default.order),
        )

    @staticmethod
    def _write(item: TopicConfig) -> JsonObject:
        return {
            "order": item.order,
            "perm": item.perm,
            "readQueueNums": item.read_queue_nums,
            "topicFilterType": item.topic_filter_type,
            "topicName": item.topic_name,
            "topicSysFlag": item.topic_sys_flag,
            "writeQueueNums": item.write_queue_nums,
        }


def queues_with(queue_ids: Iterable[int]) -> int:
    """Give the least number of queues of a topic that has these ones, at least 1.

    Ids from MAX_QUEUES on do not count: they come from a wrong byte.
    """
    return 1 + max((queue_id for queue_id in queue_ids if queue_id < MAX_QUEUES), default=0)


def queues_with_folder(root: Path, topic: str) -> int:
    """Give the number of a topic's queues as its folders show it, 0 without a folder."""
    found = queue_ids_of(root, topic)
    return queues_with(found) if found else 0


def topics_file(root: Path, fs: FileSystem | None = None) -> ConfigTableFile[TopicTable]:
    """Give the topics file of the store at ``root``."""
    known = partial(queues_with_folder, root)
    return ConfigTableFile(root / CONFIG / TOPICS_FILE, partial(TopicTable, queues_of=known), fs)


def system_topics(
    cluster: str, broker_name: str, *, auto_create: bool = True, trace: bool = False
) -> dict[str, TopicConfig]:
    """Give the topics that a 4.9 broker makes in memory at its start (TopicConfigManager).

    They reach the file with the first topic that is created or changed; the file's settings of one
    of them take precedence.
    """
    everything = PERM_READ | PERM_WRITE | PERM_INHERIT
    topics = [TopicConfig(SELF_TEST_TOPIC, 1, 1)]
    if auto_create:
        topics.append(TopicConfig(AUTO_CREATE_TOPIC_KEY_TOPIC, 8, 8, everything))
    topics += [
        TopicConfig(BENCHMARK_TOPIC, 1024, 1024),
        TopicConfig(cluster, 16, 16, everything),
        TopicConfig(broker_name, 1, 1, everything),
        TopicConfig(OFFSET_MOVED_EVENT, 1, 1),
        TopicConfig(SCHEDULE_TOPIC, SCHEDULE_QUEUES, SCHEDULE_QUEUES),
    ]
    if trace:
        topics.append(TopicConfig(TRACE_TOPIC, 1, 1))
    topics.append(TopicConfig(cluster + REPLY_TOPIC_SUFFIX, 1, 1))
    return {topic.topic_name: topic for topic in topics}
