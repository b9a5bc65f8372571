"""Topics and consumer groups, as a broker lets clients see and change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from storage.configs.subscription_groups import SubscriptionGroupConfig
    from storage.configs.topics import TopicConfig


class TopicApi(Protocol):
    """Settings of topics and groups."""

    def topics(self) -> Mapping[str, TopicConfig]:
        """All topics by name, system topics too (GET_ALL_TOPIC_CONFIG)."""
        ...

    def topic(self, topic: str) -> TopicConfig | None:
        """One topic's settings; None if there is no such topic (GET_TOPIC_CONFIG)."""
        ...

    def update_topic(self, config: TopicConfig, note: Mapping[str, str] | None = None) -> bool:
        """Create or change a topic (UPDATE_AND_CREATE_TOPIC); False if it has these settings
        already.

        ``note`` goes to the change journal: user, host, reason.
        """
        ...

    def groups(self) -> Mapping[str, SubscriptionGroupConfig]:
        """All consumer groups by name (GET_ALL_SUBSCRIPTIONGROUP_CONFIG)."""
        ...

    def update_group(
        self, config: SubscriptionGroupConfig, note: Mapping[str, str] | None = None
    ) -> bool:
        """Create or change a group (UPDATE_AND_CREATE_SUBSCRIPTIONGROUP)."""
        ...
