"""Groups of consumers: settings, members, and what waits for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from analytics.lag.ready_retries import ready_retries
from broker.members.group_table import group_table
from broker.members.living import members_by_group
from broker.tables.kinds import group_kind
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.format.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    dlq_topic,
    retry_topic,
)

from .row_types import GroupRow
from .topics import bounds_by_topic, count

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .wanted import Wanted

_PREFIXES: Final = (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)


def group_rows(broker: EmbeddedBroker, name: str, wanted: Wanted) -> Iterator[GroupRow]:
    """All groups of which the store has any trace, those of the system, too."""
    view, settings, offsets = broker.view, broker.groups(), broker.consumer_offsets()
    members, bounds = members_by_group(view.root), bounds_by_topic(view)
    topics: defaultdict[str, set[str]] = defaultdict(set)
    for group, topic in offsets:
        topics[group].add(topic)
    known = {*settings, *topics, *members}
    for topic in (*broker.topics(), *bounds):
        known |= {topic.removeprefix(one) for one in _PREFIXES if topic.startswith(one)}
    for group in sorted(filter(wanted.takes_group, known)):
        table = group_table(members.get(group, ()))
        config = settings.get(group) or SubscriptionGroupConfig(group)
        retry = retry_topic(group)
        yield GroupRow(
            name,
            group,
            group_kind(group),
            len(table.members) if table else 0,
            table.message_model.value if table else None,
            len(topics[group] - {retry}),
            ready_retries(view, retry, bounds.get(retry, {}), offsets.get((group, retry), {})),
            count(bounds.get(dlq_topic(group), {})),
            config.consume_enable,
            config.retry_max_times,
        )
