"""The groups and topics of a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from storage.configs.subscription_groups import SYSTEM_GROUP_PREFIX
from storage.format.message import retry_topic

if TYPE_CHECKING:
    from storage.configs.topics import TopicConfig
    from storage.readonly import StoreView

Offsets = Mapping[int, int]
"""Queue id to committed offset."""


class Choice(NamedTuple):
    """The requested groups and topics; None is all but RocketMQ's own groups, which are shown if
    named, or with ``include_system``."""

    groups: Collection[str] | None = None
    topics: Collection[str] | None = None
    include_retry: bool = False
    include_system: bool = False

    def names(self, group: str, topic: str) -> bool:
        """Whether a group and a topic are among those that were named, if any were."""
        return (not self.groups or group in self.groups) and (
            not self.topics or topic in self.topics
        )

    def takes(self, group: str, topic: str) -> bool:
        """Whether a group's reading of a topic is part of the request."""
        if not self.names(group, topic):
            return False
        if self._leaves_out(group):
            return False
        return bool(self.topics) or self.include_retry or topic != retry_topic(group)

    def _leaves_out(self, group: str) -> bool:
        return not self.groups and not self.include_system and group.startswith(SYSTEM_GROUP_PREFIX)

    def hidden(self, progress: Collection[tuple[str, str]]) -> int:
        """Number of groups and topics with progress that are left out as RocketMQ's own."""
        return sum(self.names(*each) and self._leaves_out(each[0]) for each in progress)

    def add_retry_topics(
        self,
        table: dict[tuple[str, str], Offsets],
        view: StoreView,
        topics: Mapping[str, TopicConfig],
    ) -> None:
        """Add retry topics that were requested and hold messages, and in which their group never
        committed.

        ``table`` is progress by group and topic. Their messages are unread all the same.
        """
        for group in {group for group, _ in table}:
            topic = retry_topic(group)
            config = topics.get(topic)
            if config is None or (group, topic) in table or not self.takes(group, topic):
                continue
            if any(view.max_offset_in_queue(topic, i) for i in range(config.read_queue_nums)):
                table[group, topic] = {}
