"""A stream's position as the progress of a group of consumers, for ``commitGroup``.

The rules of progress are those of all consumers (broker.offset.offset_manager): a commit never
takes an offset back, and one of before a deliberate move (``offset reset``) does not undo it. The
generation of a queue's progress is noted when the stream starts, so after a move the stream's
commits do not count until it is started again.

Two kinds of consumers in one group would take messages from each other: a group with live members
is refused when the stream starts, and nothing is written while it has some.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from analytics.errors import GroupProgressError
from broker.api.offsets import OffsetCommit
from broker.errors import InvalidNameError
from broker.members.living import members_by_group
from broker.offset.offset_manager import ConsumerOffsetManager
from broker.offset.offset_move import processes_folder
from broker.tables.groups import check_consuming_group
from broker.tables.kinds import NORMAL, group_kind
from storage.clock import now_ms
from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.coordination.config_lock import config_lock
from storage.counted import counted
from storage.errors import WriteLockTimeoutError

logger = logging.getLogger("rmqctl.datasource")

Queue = tuple[str, int]
"""Topic and queue id."""


class GroupProgress:
    """Writes the progress of one group in the stores that a stream reads. Pickles."""

    def __init__(self, group: str) -> None:
        """Raises GroupProgressError for a name that no group of users can have."""
        try:
            check_consuming_group(group)
        except InvalidNameError as error:
            raise GroupProgressError(f"commitGroup: {error}") from None
        if group_kind(group) != NORMAL:
            raise GroupProgressError(
                f"commitGroup: group {group} belongs to RocketMQ; name another"
            )
        self.group = group
        self._generations: dict[str, dict[Queue, int]] = {}
        self._told: set[tuple[str, str]] = set()

    def begin(self, store: str) -> None:
        """Note the generations of a store's queues, unless that was done.

        Raises GroupProgressError if the group has live members, and StoreInUseError (a Java
        broker), StoreNotWritableError and WriteLockTimeoutError if the store cannot be written.
        """
        if store in self._generations:
            return
        count = len(self._members(store))
        if count:
            were = "a live consumer" if count == 1 else f"{count} live consumers"
            raise GroupProgressError(
                f"commitGroup: group {self.group} has {were} in {store}, which would skip what "
                "this stream has read; give the stream a group of its own"
            )
        with config_lock(Path(store)):
            queues = ProgressFile(Path(store)).read().queues
        found: dict[Queue, int] = {}
        for key, row in queues.items():
            topic, group = split_topic_at_group(key) or (key, "")
            if group == self.group:
                found.update(((topic, number), now.generation) for number, now in row.items())
        self._generations[store] = found

    def commit(self, store: str, offsets: Mapping[Queue, int]) -> bool:
        """Commit offsets of queues; on the device when this returns. False: it is to be tried
        again, as the group has members now, or another process has held the write lock for long.

        Raises the errors of ``begin``.
        """
        self.begin(store)
        if self._members(store):
            self._tell(store, "it has live consumers: this stream's position is not written")
            return False
        known = self._generations[store]
        commits = [
            OffsetCommit(topic, queue_id, offset, known.get((topic, queue_id), 0))
            for (topic, queue_id), offset in offsets.items()
        ]
        try:
            with config_lock(Path(store)):
                manager = self._manager(Path(store))
                merged = manager.commit(self.group, commits)
                manager.persist()  # Java's file
        except WriteLockTimeoutError as error:
            logger.warning("the position of a stream is not written yet: %s", error)
            return False
        moved = sum(
            now.generation > commit.generation for commit, now in zip(commits, merged, strict=True)
        )
        if moved:
            self._tell(
                store,
                f"its progress was moved in {counted(moved, 'queue')} since this stream was "
                "started: the stream goes on where it is, and its position is not written there",
            )
        return True

    def _manager(self, store: Path) -> ConsumerOffsetManager:
        return ConsumerOffsetManager(
            ProgressFile(store),
            journal=Journal(store),
            now=now_ms,
            writable=True,
            processes=processes_folder(store),
        )

    def _members(self, store: str) -> list[object]:
        return list(members_by_group(Path(store)).get(self.group, ()))

    def _tell(self, store: str, what: str) -> None:
        if (store, what) not in self._told:
            self._told.add((store, what))
            logger.warning("%s: group %s: %s", store, self.group, what)
