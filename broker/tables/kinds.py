"""Kinds of topics and groups: those of users, and those of RocketMQ itself."""

from __future__ import annotations

from typing import Final

from storage.configs.subscription_groups import SYSTEM_GROUP_PREFIX, system_groups
from storage.configs.topics import system_topics
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX, is_system_topic

NORMAL: Final = "normal"


class TopicKinds:
    """The kind of topics: normal, retry, dlq or system."""

    def __init__(self, cluster: str, broker_name: str) -> None:
        """Take the names of the store's broker: it makes topics named after both."""
        self._own = system_topics(cluster, broker_name)

    def of(self, topic: str) -> str:
        """Give one topic's."""
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return "retry"
        if topic.startswith(DLQ_GROUP_TOPIC_PREFIX):
            return "dlq"
        return "system" if is_system_topic(topic) or topic in self._own else NORMAL


def group_kind(group: str) -> str:
    """Give the kind of a group: normal or system."""
    own = group.startswith(SYSTEM_GROUP_PREFIX) or group in system_groups()
    return "system" if own else NORMAL
