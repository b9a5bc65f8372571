"""Deleting a group: what goes and what stays (deleteSubGroup of RocketMQ 4.9)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker.offset.offset_move import move_offsets_of_store, offsets_now
from rmqctl.admin.changes import Outcome
from rmqctl.admin.settings import GuardedChange, now_ms
from rmqctl.admin.topics.deletion import TopicDeletion, messages_of_topic
from rmqctl.errors import NotFound, PartlyDone, Refused
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.subscription_groups import subscription_groups_file
from storage.errors import StoreNotWritableError
from storage.format.message import dlq_topic, retry_topic
from storage.readonly import StoreView

from .rows import DeletedGroupRow
from .settings import GroupTable

if TYPE_CHECKING:
    from broker.api.broker import Broker


def delete(
    view: StoreView,
    broker: "Broker",
    group: str,
    *,
    remove_offsets: bool = False,
    remove_topics: bool = False,
) -> "GroupDeletion":
    """Delete the settings of a group, and on request its offsets, and its retry and dead letter
    topics."""
    return GroupDeletion(
        view, broker, group, remove_offsets=remove_offsets, remove_topics=remove_topics
    )


class GroupDeletion(GuardedChange):
    """The deletion of one group; a row of the plan is a part of it. Rows are DeletedGroupRow."""

    def __init__(
        self,
        view: StoreView,
        broker: "Broker",
        group: str,
        *,
        remove_offsets: bool,
        remove_topics: bool,
    ) -> None:
        """NotFound if there is no trace of the group; the broker's errors for a system group."""
        self.view = view
        self._broker = broker
        self._table = GroupTable(view)
        self._table.check_changeable(group)
        self._group = group
        self._remove_offsets = remove_offsets
        self._config = self._table.manager.get(group)
        progress = offsets_now(view.root) if remove_offsets else broker.consumer_offsets()
        self._offsets = {
            topic: queues for (name, topic), queues in sorted(progress.items()) if name == group
        }
        self._topics = {
            part: topic
            for part, topic in (("retries", retry_topic(group)), ("dead letters", dlq_topic(group)))
            if broker.topic(topic) is not None
        }
        if self._config is None and not self._offsets and not self._topics:
            raise NotFound(f"group {group} does not exist in {view.root}")
        self._deletions = [
            TopicDeletion(view, topic) for topic in self._topics.values() if remove_topics
        ]
        plan = self._plan()
        super().__init__(
            DeletedGroupRow,
            plan,
            question=f"Delete group {group} of {view.root}?",
            confirm_name=group,
            has_effect=any(row.fate == "removed" for row in plan),
            entry={"group": group},
        )

    def check(self) -> None:
        """Refused for a group with live members, and while members of others read its topics;
        StoreInUseError beside a Java broker. Errors of files as TopicDeletion.check_parts."""
        members = self._broker.consumer_connection(self._group)
        if members:
            clients = ", ".join(member.client_id for member in members)
            raise Refused(
                f"group {self._group} has live members ({clients}), which would make it again; "
                "end them first"
            )
        for deletion in self._deletions:
            deletion.check_parts()
        super().check()

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Do it and read it back. Refused if a member has joined meanwhile. PartlyDone if a part
        cannot be written after others were removed."""
        if not self.has_effect:
            return Outcome(self.unchanged_rows())
        self.check()
        note = {**note, **self.entry}
        if self._config is not None:
            check = self._table.check_unchanged(self._config)
            self._table.manager.delete(self._group, note, check)
        is_begun = self._config is not None
        try:
            if self._remove_offsets and self._forget_offsets(note):
                is_begun = True
            for deletion in self._deletions:
                deletion.delete(note)
                is_begun = True
        except StoreNotWritableError as error:
            if not is_begun:
                raise
            raise PartlyDone(
                f"a part of group {self._group} was deleted, but not all: {error}; remove the "
                "cause, then repeat the command"
            ) from error
        return Outcome(
            [
                row._replace(applied=row.fate == "kept" or not self._is_there(row))
                for row in self.plan
            ]
        )

    def _plan(self) -> list[DeletedGroupRow]:
        parts: list[tuple[str, str | None, int, str, str]] = []
        if self._config is not None:
            parts.append(("settings", None, 1, "removed", "config/subscriptionGroup.json"))
        fate = ("kept", "a group of that name goes on there; --remove-offsets forgets them")
        if self._remove_offsets:
            fate = ("removed", "a group of that name begins as a new one")
        parts += [("offsets", topic, len(found), *fate) for topic, found in self._offsets.items()]
        fate = ("kept", "readable as a topic; --remove-topics deletes it")
        if self._deletions:
            fate = ("removed", "settings and queues of the topic; see 'topic delete'")
        for part, topic in self._topics.items():
            parts.append((part, topic, sum(messages_of_topic(self.view, topic).values()), *fate))
        return [DeletedGroupRow(self._group, *part, None) for part in parts]

    def _forget_offsets(self, note: Mapping[str, Any]) -> bool:
        """Forget what there is now, with what processes have not written yet, which a move of
        offsets takes over; False if there is none."""
        root = self.view.root
        targets: dict[tuple[str, int], int | None] = {
            (topic_at_group(topic, group), queue_id): None
            for (group, topic), queues in offsets_now(root).items()
            if group == self._group
            for queue_id in queues
        }
        if targets:
            move_offsets_of_store(root, targets, note, now_ms)
        return bool(targets)

    def _is_there(self, row: DeletedGroupRow) -> bool:
        """Whether a part is still there, read anew."""
        root = self.view.root
        if row.part == "settings":
            return subscription_groups_file(root).read(now_ms()).get(self._group) is not None
        with StoreView.open(root) as view:
            if row.part == "offsets":
                key = topic_at_group(row.topic or "", self._group)
                return bool(view.consumer_offsets().get(key))
            queues = {topic for topic, _ in view.queues()}
            return row.topic in queues or row.topic in view.topics()
