"""Deleting a topic: what goes and what stays (deleteTopic of RocketMQ 4.9)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from broker.tables.topics import TopicManager
from rmqctl.errors import NotFound, Refused
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.dlq_acks import DlqAcksFile
from storage.configs.journal import Journal
from storage.coordination.exclusive import alone
from storage.coordination.lock_owners import find_holders
from storage.format.message import LMQ_PREFIX
from storage.queue.deletion import delete_queues
from storage.readonly import StoreView

from .plans import groups_of_topic, messages_of_topic, unchanged
from .rows import DeletedTopicRow

if TYPE_CHECKING:
    from rmqctl.cli.opening import Tables


class TopicDeletion:
    """The deletion of one topic. Reads the store once, when it is made."""

    def __init__(self, tables: Tables, topic: str, *, remove_offsets: bool) -> None:
        """NotFound if there is no such topic; the broker's errors if it may not be deleted."""
        tables.topics.check_changeable(topic)
        config = tables.topics.get(topic)
        if config is None:
            raise NotFound(f"topic {topic} does not exist in {tables.view.root}")
        if topic.startswith(LMQ_PREFIX):
            raise Refused(
                f"{topic} is a light queue: it has no settings and goes with its messages"
            )
        self._tables = tables
        self._topic = topic
        self._config = config
        self._has_settings = config.write_queue_nums > 0 or topic in tables.view.topics()
        self._queues = messages_of_topic(tables, topic)
        self._groups = groups_of_topic(tables, topic)
        self._remove_offsets = remove_offsets

    def check_possible(self) -> None:
        """Refuse beside processes that have the store open for writing (7), and Java (5)."""
        root = self._tables.view.root
        writers = find_holders(root).writers
        if writers:
            pids = ", ".join(map(str, writers))
            raise Refused(
                f"process {pids} has {root} open for writing and may still write to the topic; "
                "end it first (rmqctl broker status shows who it is)"
            )

    def plan(self) -> list[DeletedTopicRow]:
        """A row for each part of the topic."""
        messages = sum(self._queues.values())
        topic = self._topic
        rows = []
        if self._has_settings:
            rows.append(
                DeletedTopicRow(topic, "settings", None, 1, "removed", "config/topics.json", None)
            )
        if self._queues:
            rows += [
                DeletedTopicRow(
                    topic, "queues", None, len(self._queues), "removed", "consumequeue/", None
                ),
                DeletedTopicRow(
                    topic,
                    "messages",
                    None,
                    messages,
                    "kept",
                    "in the log until its files are too old; found by offset id only",
                    None,
                ),
            ]
        note = (
            "config/consumerOffset.json"
            if self._remove_offsets
            else "as RocketMQ 4.9; --remove-offsets forgets them"
        )
        fate = "removed" if self._remove_offsets else "kept"
        rows += [
            DeletedTopicRow(topic, "offsets", group, queues, fate, note, None)
            for group, queues in self._groups.items()
        ]
        return rows

    def carry_out(self, note: Mapping[str, Any]) -> Iterator[DeletedTopicRow]:
        """Do it; rows as of the plan. StoreInUseError if another process has opened the store."""
        view, topic = self._tables.view, self._topic
        root = view.root
        plan = self.plan()
        with alone(root):
            # The write lock is held already, so the topics need no lock of their own.
            topics = TopicManager(
                root,
                self._tables.topics.config,
                write_lock=nullcontext,
                queues=view.queues,
                now=_now,
            )
            check = unchanged(f"topic {topic}", self._config)
            if not topics.delete(topic, note, check):
                Journal(root).append({**note, "old": None, "new": None}, _now())
            if self._queues:
                delete_queues(view, topic)
                # New messages get the same offsets again, and those are not acknowledged.
                everything = {queue_id: [(0, view.log_max_offset())] for queue_id in self._queues}
                DlqAcksFile(root).unmark(topic, everything)
            if self._remove_offsets and self._groups:
                self._forget_offsets(note)
            for row in plan:
                yield row._replace(applied=row.fate == "kept" or not self._is_there(row))

    def _is_there(self, row: DeletedTopicRow) -> bool:
        """Whether a part is still there, read anew."""
        with StoreView.open(self._tables.view.root) as view:
            if row.part == "settings":
                return self._topic in view.topics()
            if row.part == "queues":
                return any(name == self._topic for name, _ in view.queues())
            key = topic_at_group(self._topic, row.group or "")
            return bool(view.consumer_offsets().get(key))

    def _forget_offsets(self, note: Mapping[str, Any]) -> None:
        from broker.offset.offset_move import move_offsets_of_store

        offsets = self._tables.view.consumer_offsets()
        targets: dict[tuple[str, int], int | None] = {
            (topic_at_group(self._topic, group), queue_id): None
            for group in self._groups
            for queue_id in offsets[topic_at_group(self._topic, group)]
        }
        move_offsets_of_store(self._tables.view.root, targets, note, _now, alone=True)


def _now() -> int:
    return time.time_ns() // 1_000_000
