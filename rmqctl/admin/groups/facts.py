"""Facts about consumer groups and their members."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from analytics.lag.ready_retries import ready_retries
from broker.errors import BrokerError
from broker.members.group_table import GroupTable, group_table
from broker.members.living import members_by_group
from broker.tables.kinds import group_kind
from broker.validation import check_group
from rmqctl.admin.topics.facts import queues_by_topic
from rmqctl.errors import NotFound
from storage.errors import StoreError
from storage.format.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    dlq_topic,
    retry_topic,
)

from .rows import GroupClientRow, GroupDescription, GroupRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from broker.api.members import ClientDescription
    from storage.queue.reader import QueueBounds
    from storage.readonly import StoreView

RunningInfo = Callable[[str, str], Mapping[str, Any]]
"""Asks a member for its state, by group and client id: Broker.consumer_running_info."""

_UNANSWERED = (BrokerError, StoreError, OSError)


def list_groups(view: "StoreView", broker: "Broker") -> Iterator[GroupRow]:
    """All groups by name."""
    settings = broker.groups()
    facts = _Facts(view, broker)
    for group in facts.groups():
        table = facts.table(group)
        config = settings.get(group)
        yield GroupRow(
            group,
            group_kind(group),
            len(table.members) if table else 0,
            table.message_model.value if table else None,
            len([t for t in facts.topics[group] if t != retry_topic(group)]),
            facts.retry(group),
            facts.dead(group),
            config is None or config.consume_enable,
            16 if config is None else config.retry_max_times,
        )


def describe(
    view: "StoreView", broker: "Broker", groups: Collection[str] = ()
) -> Iterator[GroupDescription]:
    """Some groups in full; none named: all. NotFound for an unknown group."""
    settings = broker.groups()
    facts = _Facts(view, broker)
    for group in _chosen(facts, groups):
        table = facts.table(group)
        config = settings.get(group)
        values = None
        if config is not None:
            values = {
                name: value for name, value in config._asdict().items() if name != "group_name"
            }
        yield GroupDescription(
            group,
            group_kind(group),
            values,
            table.members[-1].consumer.consume_type.value if table else None,
            table.message_model.value if table else None,
            _subscriptions(table),
            [member.client.client_id for member in table.members] if table else [],
            sorted(facts.topics[group]),
            facts.retry(group),
            facts.dead(group),
        )


def clients(
    view: "StoreView",
    broker: "Broker",
    groups: Collection[str] = (),
    *,
    ask: RunningInfo | None = None,
) -> Iterator[GroupClientRow]:
    """The live members of some groups; none named: of all. Every member is asked.

    ``ask`` does that; default: the broker, which has to be open for writing. NotFound for an
    unknown group.
    """
    facts = _Facts(view, broker)
    ask = ask or broker.consumer_running_info
    for group in _chosen(facts, groups):
        table = facts.table(group)
        for member in table.members if table else ():
            info = _running_info(ask, group, member.client.client_id)
            yield _client_row(group, member.client, info)


def members_with_info(
    view: "StoreView", group: str, ask: RunningInfo
) -> "Iterator[tuple[ClientDescription, Mapping[str, Any] | None]]":
    """The live members of a group, each asked for its state; None if it does not answer."""
    table = group_table(members_by_group(view.root).get(group, ()))
    for member in table.members if table else ():
        yield member.client, _running_info(ask, group, member.client.client_id)


def _client_row(
    group: str, client: "ClientDescription", info: Mapping[str, Any] | None
) -> GroupClientRow:
    data = client.consumer
    queues = None
    if info is not None:
        queues = [f"{queue['topic']}:{queue['queue_id']}" for queue in info["queues"]]
    elif data is not None and data.queues is not None:
        queues = [f"{queue.topic}:{queue.queue_id}" for queue in data.queues]
    return GroupClientRow(
        group,
        client.client_id,
        client.host,
        client.pid,
        client.since,
        data.consume_type.value if data else None,
        data.message_model.value if data else None,
        [f"{item.topic}:{item.sub_string}" for item in data.subscriptions] if data else [],
        queues,
        client.last_heartbeat,
        data.consume_from_where.value if data else None,
        None if info is None else dict(info),
    )


def _running_info(ask: RunningInfo, group: str, client_id: str) -> Mapping[str, Any] | None:
    """The running info of a client; None if it does not answer or cannot be queried."""
    try:
        return ask(group, client_id)
    except _UNANSWERED:
        return None


def _subscriptions(table: GroupTable | None) -> list[Any] | None:
    if table is None:
        return None
    return [
        {
            "topic": item.topic,
            "expression": item.sub_string,
            "expression_type": item.expression_type,
            "sub_version": item.sub_version,
        }
        for _, item in sorted(table.subscriptions.items())
    ]


def _chosen(facts: "_Facts", groups: Collection[str]) -> Iterable[str]:
    known = facts.groups()
    for group in groups:
        if group not in known:
            check_group(group)
            raise NotFound(f"group {group} does not exist in {facts.root}")
    return groups or known


class _Facts:
    """Facts that several rows need, read once."""

    def __init__(self, view: "StoreView", broker: "Broker") -> None:
        self._view = view
        self._broker = broker
        self.root = view.root
        self.offsets = broker.consumer_offsets()
        self.topics: dict[str, list[str]] = defaultdict(list)
        for group, topic in self.offsets:
            self.topics[group].append(topic)
        self._queues = queues_by_topic(view)
        self._members = members_by_group(view.root, with_queues=True)

    def groups(self) -> list[str]:
        """All groups with any trace in the store, by name."""
        names = {*self._broker.groups(), *self.topics, *self._members}
        known = (*self._broker.topics(), *self._queues)
        for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
            names |= {topic.removeprefix(prefix) for topic in known if topic.startswith(prefix)}
        return sorted(names)

    def table(self, group: str) -> GroupTable | None:
        """The current members of a group."""
        return group_table(self._members.get(group, ()))

    def retry(self, group: str) -> int | None:
        """Messages in the retry topic that the group has not consumed; None if that is unknown."""
        topic = retry_topic(group)
        committed = self.offsets.get((group, topic), {})
        return ready_retries(self._view, topic, self._bounds(topic), committed)

    def dead(self, group: str) -> int:
        """Messages in the group's dead letter topic."""
        return sum(high - low for low, high in self._bounds(dlq_topic(group)).values())

    def _bounds(self, topic: str) -> dict[int, "QueueBounds"]:
        return {
            queue_id: self._view.queue_bounds(topic, queue_id) for queue_id in self._queues[topic]
        }
