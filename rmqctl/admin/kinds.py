"""Kinds of topics and groups: those of users, and those of RocketMQ itself."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from broker.java_store import config_of
from broker.validation import is_system_topic
from storage.configs.subscription_groups import SYSTEM_GROUP_PREFIX, system_groups
from storage.configs.topics import system_topics
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX

if TYPE_CHECKING:
    from storage.readonly import StoreView

NORMAL: Final = "normal"
_KIND: Final = re.compile(r"\bkind\b", re.IGNORECASE)


class TopicKinds:
    """The kind of topics: normal, retry, dlq or system."""

    def __init__(self, view: "StoreView") -> None:
        config = config_of(view.root, reading=True)
        self._own = system_topics(config.broker_cluster_name, config.broker_name)

    def of(self, topic: str) -> str:
        """One topic's."""
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return "retry"
        if topic.startswith(DLQ_GROUP_TOPIC_PREFIX):
            return "dlq"
        return "system" if is_system_topic(topic) or topic in self._own else NORMAL


def group_kind(group: str) -> str:
    """The kind of a group: normal or system."""
    own = group.startswith(SYSTEM_GROUP_PREFIX) or group in system_groups()
    return "system" if own else NORMAL


class UsersRows:
    """Rows of users' topics and groups; counts the others."""

    def __init__(self, rows: Iterable[Any], view: "StoreView") -> None:
        self._rows = rows
        self._kinds = TopicKinds(view)
        self.hidden = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self._rows:
            if self._is_users(row):
                yield row
            else:
                self.hidden += 1

    def _is_users(self, row: Any) -> bool:
        kind = getattr(row, "kind", None)
        if kind is not None:
            return bool(kind == NORMAL)
        group, topic = getattr(row, "group", None), getattr(row, "topic", None)
        if group is not None and group_kind(group) != NORMAL:
            return False
        return topic is None or self._kinds.of(topic) == NORMAL


def decides_kind(where: str | None) -> bool:
    """Whether a condition names ``kind``: rows of the system are shown as it says."""
    return _KIND.search(where or "") is not None
