"""Deleting a topic: what goes and what stays (deleteTopic of RocketMQ 4.9)."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.members.living import members_by_group
from rmqctl.admin.changes import Outcome
from rmqctl.admin.settings import GuardedChange, now_ms
from rmqctl.errors import PartlyDone, Refused
from storage.configs.consumer_offsets import split_topic_at_group, topic_at_group
from storage.configs.dlq_acks import DlqAcksFile
from storage.configs.journal import Journal
from storage.coordination.exclusive import alone
from storage.coordination.lock_owners import is_java_running
from storage.errors import StoreInUseError, StoreNotWritableError
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, LMQ_PREFIX
from storage.queue.deletion import delete_queues, refuse_deletion
from storage.readonly import StoreView

from .rows import DeletedTopicRow
from .settings import TopicTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.members.group_table import Member
    from broker.tables.topics import TopicManager


def delete(view: StoreView, topic: str, *, remove_offsets: bool = False) -> "TopicDeletion":
    """Delete the settings and queues of a topic, and on request the offsets of groups in it."""
    return TopicDeletion(view, topic, remove_offsets=remove_offsets)


class TopicDeletion(GuardedChange):
    """The deletion of one topic; a row of the plan is a part of it. Rows are DeletedTopicRow."""

    def __init__(self, view: StoreView, topic: str, *, remove_offsets: bool = False) -> None:
        """NotFound if there is no such topic; the broker's errors if it may not be deleted."""
        self.view = view
        self._table = TopicTable(view)
        self._table.check_changeable(topic)
        config = self._table.manager.get(topic)
        if config is None:
            raise self._table.missing(topic)
        if topic.startswith(LMQ_PREFIX):
            raise Refused(
                f"{topic} is a light queue: it has no settings and goes with its messages"
            )
        self._topic = topic
        self._config = config
        self._messages = messages_of_topic(view, topic)
        self._remove_offsets = remove_offsets
        groups = self._offsets_now() if remove_offsets else _offsets_of_topic(view, topic)
        self._groups = {group: len(queues) for group, queues in sorted(groups.items())}
        super().__init__(
            DeletedTopicRow,
            self._plan(),
            question=f"Delete topic {topic} of {view.root}?",
            confirm_name=topic,
            entry={"topic": topic},
        )

    def check(self) -> None:
        """Refused while members read the topic; StoreInUseError beside a Java broker. Other
        processes may have the store open, and write it. Errors of files as ``check_parts``."""
        self.check_parts()
        super().check()

    def check_parts(self) -> None:
        """Raise what would end it midway: Refused while members read the topic,
        StoreNotWritableError for folders of its queues, and CorruptFileError for a file that it
        changes."""
        root = self.view.root
        readers = readers_of_topic(root, self._topic)
        if readers:
            raise Refused(_held_by_readers(self._topic, readers))
        if self._messages:
            refuse_deletion(root, self._topic)
            if self._has_marks:
                DlqAcksFile(root).all()

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Do it and read it back. StoreInUseError beside a Java broker. PartlyDone if the disk is
        full, or broken, when the settings are gone."""
        self.check()
        return Outcome(self.delete({**note, **self.entry}))

    def delete(self, note: Mapping[str, Any]) -> list[DeletedTopicRow]:
        """Do it without ``check``; ``note`` is the whole journal entry."""
        with ExitStack() as holding:
            is_alone = bool(self._messages) and self._hold_alone(holding)
            self._delete_queues(note, alone=is_alone)
            try:
                if self._messages and self._has_marks:
                    self._forget_marks()
                if self._remove_offsets:
                    self._forget_offsets(note, alone=is_alone)
            except StoreNotWritableError as error:
                raise PartlyDone(
                    f"topic {self._topic} was deleted, but not all that goes with it: {error}; "
                    "remove the cause; 'rmqctl offset delete' forgets offsets that are left"
                ) from error
            return [
                row._replace(applied=row.fate == "kept" or not self._is_there(row))
                for row in self.plan
            ]

    def _delete_queues(self, note: Mapping[str, Any], *, alone: bool) -> None:
        """Delete settings and queues; PartlyDone if only the settings could be."""
        if not self._messages:
            self._delete_settings(self._table.manager, note)
            return
        is_begun = False

        def delete_settings(topics: "TopicManager") -> None:
            nonlocal is_begun
            self._delete_settings(topics, note)
            is_begun = True

        try:
            if alone:
                # The write lock is held already: the topics need no lock of their own.
                topics = self._table.open(nullcontext)
                delete_queues(self.view, self._topic, before=lambda: delete_settings(topics))
            else:
                self._delete_beside_writers(delete_settings)
        except StoreNotWritableError as error:
            if not is_begun:
                raise
            raise PartlyDone(
                f"a part of topic {self._topic} was deleted, but not all: {error}; remove the "
                "cause, then repeat the command"
            ) from error

    def _hold_alone(self, holding: ExitStack) -> bool:
        """Hold the store alone, if no other process of rmqctl has it open for writing.

        StoreInUseError beside a Java broker.
        """
        try:
            holding.enter_context(alone(self.view.root))
        except StoreInUseError:
            if is_java_running(self.view.root):
                raise
            return False
        return True

    def _delete_settings(self, topics: "TopicManager", note: Mapping[str, Any]) -> None:
        unchanged = self._table.check_unchanged(self._config)
        if not topics.delete(self._topic, note, unchanged):
            entry = {"topic": self._topic, **note, "old": None, "new": None}
            Journal(self.view.root).append(entry, now_ms())

    def _delete_beside_writers(self, delete_settings: "Callable[[TopicManager], None]") -> None:
        """Delete settings and queues under one write lock, as one of the store's writers."""
        from storage.store import MessageStore

        with MessageStore.open(self.view.root) as store:
            # The write lock is held by then: the topics need no lock of their own.
            topics = self._table.open(nullcontext)
            store.delete_queues(self._topic, lambda: delete_settings(topics))

    def _plan(self) -> list[DeletedTopicRow]:
        parts: list[tuple[str, str | None, int, str, str]] = []
        if self._config.write_queue_nums > 0 or self._topic in self.view.topics():
            parts.append(("settings", None, 1, "removed", "config/topics.json"))
        if self._messages:
            messages = sum(self._messages.values())
            stay = "in the log until its files are too old; found by offset id only"
            parts.append(("queues", None, len(self._messages), "removed", "consumequeue/"))
            parts.append(("messages", None, messages, "kept", stay))
        fate = ("kept", "as RocketMQ 4.9; --remove-offsets forgets them")
        if self._remove_offsets:
            fate = ("removed", "config/consumerOffset.json")
        parts += [("offsets", group, queues, *fate) for group, queues in self._groups.items()]
        return [DeletedTopicRow(self._topic, *part, None) for part in parts]

    def _is_there(self, row: DeletedTopicRow) -> bool:
        """Whether a part is still there, read anew."""
        with StoreView.open(self.view.root) as view:
            if row.part == "settings":
                return self._topic in view.topics()
            if row.part == "queues":
                return any(name == self._topic for name, _ in view.queues())
            key = topic_at_group(self._topic, row.group or "")
            return bool(view.consumer_offsets().get(key))

    @property
    def _has_marks(self) -> bool:
        """Whether its messages can be marked as handled."""
        return self._topic.startswith(DLQ_GROUP_TOPIC_PREFIX)

    def _forget_marks(self) -> None:
        """New messages get the same offsets again, and those are not acknowledged."""
        end = self.view.log_max_offset()
        everything = {queue_id: [(0, end)] for queue_id in self._messages}
        DlqAcksFile(self.view.root).unmark(self._topic, everything)

    def _forget_offsets(self, note: Mapping[str, Any], *, alone: bool) -> None:
        from broker.offset.offset_move import move_offsets_of_store

        targets: dict[tuple[str, int], int | None] = {
            (topic_at_group(self._topic, group), queue_id): None
            for group, queues in self._offsets_now().items()
            for queue_id in queues
        }
        if targets:
            move_offsets_of_store(self.view.root, targets, note, now_ms, alone=alone)

    def _offsets_now(self) -> dict[str, dict[int, int]]:
        """The progress of groups in the topic, with what processes have not written yet, which a
        move of offsets takes over."""
        from broker.offset.offset_move import offsets_now

        found = offsets_now(self.view.root)
        return {group: queues for (group, topic), queues in found.items() if topic == self._topic}


def messages_of_topic(view: StoreView, topic: str) -> dict[int, int]:
    """Stored messages in each queue of a topic that has or had messages."""
    bounds = {
        queue_id: view.queue_bounds(topic, queue_id)
        for name, queue_id in view.queues()
        if name == topic
    }
    return {queue_id: high - low for queue_id, (low, high) in bounds.items()}


def _offsets_of_topic(view: StoreView, topic: str) -> dict[str, dict[int, int]]:
    """The progress of groups in a topic, as files have it."""
    found = {}
    for key, queues in view.consumer_offsets().items():
        parts = split_topic_at_group(key)
        if parts is not None and parts[0] == topic and queues:
            found[parts[1]] = queues
    return found


def readers_of_topic(root: Path, topic: str) -> "list[tuple[str, Member]]":
    """The live members that subscribe to a topic, each with its group.

    A member whose subscriptions cannot be read here counts: it may read the topic.
    """
    return [
        (group, member)
        for group, members in members_by_group(root).items()
        for member in members
        if member.client.consumer is None
        or any(item.topic == topic for item in member.consumer.subscriptions)
    ]


def _held_by_readers(topic: str, readers: "Sequence[tuple[str, Member]]") -> str:
    group, member = readers[0]
    client = member.client
    how = f"reads topic {topic}"
    if client.consumer is None:
        how = f"may read topic {topic} (its subscriptions cannot be read here)"
    more = f" (and {len(readers) - 1} more)" if len(readers) > 1 else ""
    return (
        f"process {client.pid} has a consumer of group {group} that {how}{more}; end "
        f"{'them' if more else 'it'} first ('rmqctl group clients {group}' shows members), then "
        "repeat the command"
    )
