"""Deleting a group: what goes and what stays (deleteSubGroup of RocketMQ 4.9)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from broker.offset.offset_move import move_offsets_of_store
from rmqctl.errors import NotFound, Refused
from rmqctl.topic.deletion import TopicDeletion
from rmqctl.topic.plans import messages_of_topic, unchanged
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.subscription_groups import subscription_groups_file
from storage.format.message import dlq_topic, retry_topic
from storage.readonly import StoreView

from .plans import refuse_system_group
from .rows import DeletedGroupRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.opening import Tables

_RETRIES: Final = "retries"
_DEAD: Final = "dead letters"


class GroupDeletion:
    """The deletion of one group. Reads the store once, when it is made."""

    def __init__(
        self,
        tables: Tables,
        broker: EmbeddedBroker,
        group: str,
        *,
        remove_offsets: bool,
        remove_topics: bool,
    ) -> None:
        """NotFound if there is no trace of the group; the broker's errors for a system group."""
        refuse_system_group(group)
        self._tables = tables
        self._broker = broker
        self._group = group
        self._remove_offsets = remove_offsets
        self._config = tables.groups.get(group)
        self._offsets = {
            topic: queues
            for (name, topic), queues in sorted(broker.consumer_offsets().items())
            if name == group
        }
        self._topics = {
            part: topic
            for part, topic in ((_RETRIES, retry_topic(group)), (_DEAD, dlq_topic(group)))
            if tables.topics.get(topic) is not None
        }
        if self._config is None and not self._offsets and not self._topics:
            raise NotFound(f"group {group} does not exist in {tables.view.root}")
        self._deletions = [
            TopicDeletion(tables, topic, remove_offsets=False)
            for topic in self._topics.values()
            if remove_topics
        ]

    def check_possible(self) -> None:
        """Refuse a group with live members (7), and topics while a process writes the store."""
        table = self._broker.members.group_table(self._group)
        if table is not None and table.members:
            clients = ", ".join(member.client.client_id for member in table.members)
            raise Refused(
                f"group {self._group} has live members ({clients}), which would make it again; "
                "end them first"
            )
        for deletion in self._deletions:
            deletion.check_possible()

    def plan(self) -> list[DeletedGroupRow]:
        """A row for each part of the group."""
        group = self._group
        rows = []
        if self._config is not None:
            rows.append(
                DeletedGroupRow(
                    group, "settings", None, 1, "removed", "config/subscriptionGroup.json", None
                )
            )
        fate, note = "kept", "a group of that name goes on there; --remove-offsets forgets them"
        if self._remove_offsets:
            fate, note = "removed", "a group of that name begins as a new one"
        rows += [
            DeletedGroupRow(group, "offsets", topic, len(queues), fate, note, None)
            for topic, queues in self._offsets.items()
        ]
        fate, note = "kept", "readable as a topic; --remove-topics deletes it"
        if self._deletions:
            fate, note = "removed", "settings and queues of the topic; see 'topic delete'"
        for part, topic in self._topics.items():
            messages = sum(messages_of_topic(self._tables, topic).values())
            rows.append(DeletedGroupRow(group, part, topic, messages, fate, note, None))
        return rows

    def carry_out(self, note: Mapping[str, Any]) -> Iterator[DeletedGroupRow]:
        """Do it and read it back; rows as of the plan. Refused if a member has joined meanwhile."""
        self.check_possible()
        plan = self.plan()
        group = self._group
        if self._config is not None:
            check = unchanged(f"group {group}", self._config)
            self._tables.groups.delete(group, note, check)
        if self._remove_offsets and self._offsets:
            self._forget_offsets(note)
        for deletion in self._deletions:
            list(deletion.carry_out(note))
        for row in plan:
            yield row._replace(applied=row.fate == "kept" or not self._is_there(row))

    def _forget_offsets(self, note: Mapping[str, Any]) -> None:
        targets: dict[tuple[str, int], int | None] = {
            (topic_at_group(topic, self._group), queue_id): None
            for topic, queues in self._offsets.items()
            for queue_id in queues
        }
        move_offsets_of_store(self._tables.view.root, targets, note, _now)

    def _is_there(self, row: DeletedGroupRow) -> bool:
        """Whether a part is still there, read anew."""
        root = self._tables.view.root
        if row.part == "settings":
            return subscription_groups_file(root).read(_now()).get(self._group) is not None
        with StoreView.open(root) as view:
            if row.part == "offsets":
                key = topic_at_group(row.topic or "", self._group)
                return bool(view.consumer_offsets().get(key))
            queues = {topic for topic, _ in view.queues()}
            return row.topic in queues or row.topic in view.topics()


def _now() -> int:
    return time.time_ns() // 1_000_000
