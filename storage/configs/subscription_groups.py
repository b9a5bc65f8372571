"""subscriptionGroup.json: the consumer groups of a broker (SubscriptionGroupConfig of 4.9).

{"dataVersion":{...},"subscriptionGroupTable":{group -> {brokerId, consumeEnable, ...}}}
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from storage.files.fs import FileSystem
from storage.format.message import retry_topic
from storage.format.names import CONFIG

from .config_file import JsonObject
from .config_table import ConfigTable, ConfigTableFile, flag, number, queue_count
from .topics import queues_with_folder

SUBSCRIPTION_GROUP_FILE: Final = "subscriptionGroup.json"

SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
TOOLS_CONSUMER_GROUP: Final = "TOOLS_CONSUMER"


class SubscriptionGroupConfig(NamedTuple):
    """Settings of one consumer group; the defaults are those of an auto-created one."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True


class SubscriptionGroupTable(ConfigTable[SubscriptionGroupConfig]):
    """The groups in a subscriptionGroup.json."""

    table_member = "subscriptionGroupTable"
    queue_counts = MappingProxyType({"retryQueueNums": "retry_queue_nums"})
    kind = "group"

    @staticmethod
    def _read(name: str, row: JsonObject) -> SubscriptionGroupConfig:
        default = SubscriptionGroupConfig(name)
        return SubscriptionGroupConfig(
            name,
            flag(row, "consumeEnable", default=True),
            flag(row, "consumeFromMinEnable", default=True),
            flag(row, "consumeBroadcastEnable", default=True),
            queue_count(row, "retryQueueNums", default.retry_queue_nums),
            number(row, "retryMaxTimes", default.retry_max_times),
            number(row, "brokerId", default.broker_id),
            number(row, "whichBrokerWhenConsumeSlowly", default.which_broker_when_consume_slowly),
            flag(row, "notifyConsumerIdsChangedEnable", default=True),
        )

    @staticmethod
    def _write(item: SubscriptionGroupConfig) -> JsonObject:
        return {
            "brokerId": item.broker_id,
            "consumeBroadcastEnable": item.consume_broadcast_enable,
            "consumeEnable": item.consume_enable,
            "consumeFromMinEnable": item.consume_from_min_enable,
            "groupName": item.group_name,
            "notifyConsumerIdsChangedEnable": item.notify_consumer_ids_changed_enable,
            "retryMaxTimes": item.retry_max_times,
            "retryQueueNums": item.retry_queue_nums,
            "whichBrokerWhenConsumeSlowly": item.which_broker_when_consume_slowly,
        }


def subscription_groups_file(
    root: Path, fs: FileSystem | None = None
) -> ConfigTableFile[SubscriptionGroupTable]:
    """Give the groups file of the store at ``root``."""

    def retry_queues(group: str) -> int:
        return queues_with_folder(root, retry_topic(group))

    table = partial(SubscriptionGroupTable, queues_of=retry_queues)
    return ConfigTableFile(root / CONFIG / SUBSCRIPTION_GROUP_FILE, table, fs)


def system_groups() -> dict[str, SubscriptionGroupConfig]:
    """Give the groups that a 4.9 broker makes in memory at its start (SubscriptionGroupManager)."""
    names = (
        TOOLS_CONSUMER_GROUP,
        "FILTERSRV_CONSUMER",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PULL",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
    )
    return {name: SubscriptionGroupConfig(name) for name in names}
