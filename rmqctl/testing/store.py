"""A store of one test: what is in it, what groups have read, and a clock that a test moves."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analytics.lag.delayed import doubt_of_level, levels, waiting as delayed
from analytics.lag.selection import Choice
from broker.api.members import MessageModel
from broker.embedded.broker import EmbeddedBroker
from broker.members.group_table import group_table
from broker.members.living import members_by_group
from rmqctl.admin.kinds import topic_kinds
from rmqctl.admin.lag import Left, left, look, queue_rows
from rmqctl.admin.queue_scan import QueueScan
from rmqctl.admin.retries.retries import levels_in_doubt, waiting_retries
from rmqctl.errors import NotFound
from storage.clock import now_ms
from storage.counted import counted
from storage.errors import StoreError
from storage.readonly import StoreView

if TYPE_CHECKING:
    from collections.abc import Collection

    from storage.format.message import MessageExt

_BETWEEN_LOOKS_S: Final = 0.01


class RocketMQStore:
    """An empty store in a folder of its own. A path (``os.PathLike``) for all that take one.

    Each method opens the files for reading and takes no lock: it sees what any process has stored.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._ahead_ms = 0

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"RocketMQStore({str(self.path)!r})"

    def now_ms(self) -> int:
        """The clock of ``rocketmq_broker``: ms since the epoch, with what was added to it."""
        return now_ms() + self._ahead_ms

    def advance_delay(self, seconds: float) -> None:
        """Set the clock of ``rocketmq_broker`` ahead: delayed messages and retries that are due by
        then are delivered within about a second.

        Brokers of other processes have clocks of their own. Raises ValueError for less than 0.
        """
        if seconds < 0:
            raise ValueError(f"a clock is set ahead by 0 s or more, not by {seconds}")
        self._ahead_ms += round(seconds * 1000)

    def topics(self) -> list[str]:
        """The topics that hold messages, sorted; without those of RocketMQ itself, but with retry
        topics and dead letters."""
        with StoreView.open(self.path) as view:
            return _topics(view)

    def messages(self, topic: str) -> list[MessageExt]:
        """All messages of a topic in the order in which they were stored; none if there is no such
        topic. Raises StoreError if one cannot be read."""
        with StoreView.open(self.path) as view:
            scan = QueueScan(view, topic)
            found = sorted(scan.messages(), key=lambda message: message.commitlog_offset)
            if scan.unreadable:
                raise StoreError(f"{counted(scan.unreadable, 'message')} of {topic} cannot be read")
            return found

    def retries(self, group: str) -> list[MessageExt]:
        """The messages that a group has failed at, and that wait to come again; also those that are
        on their way to the dead letters. Raises StoreError if it is unknown which wait."""
        with StoreView.open(self.path) as view:
            if doubts := levels_in_doubt(view, group):
                raise StoreError("; ".join(map(doubt_of_level, doubts)))
            return [one.message for one in waiting_retries(view, group)]

    def wait_until_consumed(self, group: str, timeout: float = 10.0) -> None:
        """Wait until a group has read every message of its topics, and no retry of it waits.

        Its topics are those that its living members subscribe to, and those in which it has
        progress. Delayed messages of them that are due count as not read, others do not count. A
        dead letter counts as read. Consumers of this process commit their progress for
        it; those of other processes do so when their time comes (RocketMQ's default: every 5 s).

        Raises TimeoutError that names what is not read, and ValueError for a group whose members
        are broadcasting. A group that does not exist is waited for.
        """
        from client.runtime.client_manager import CLIENT_MANAGER

        deadline = time.monotonic() + timeout
        CLIENT_MANAGER.persist_all_consumer_offset()
        while missing := self._not_consumed(group):
            if time.monotonic() >= deadline:
                raise TimeoutError(f"after {timeout:g} s {'; '.join(missing)}")
            time.sleep(_BETWEEN_LOOKS_S)
            CLIENT_MANAGER.persist_all_consumer_offset()

    def _not_consumed(self, group: str) -> list[str]:
        """What a group has not read, a sentence each; none if it has read all."""
        with EmbeddedBroker.open(self.path, read_only=True) as broker:
            table = group_table(members_by_group(self.path).get(group, ()))
            if table is not None and table.message_model is MessageModel.BROADCASTING:
                raise ValueError(
                    f"group {group} is broadcasting: its members keep their progress, not the "
                    "broker; wait for what the listeners have done"
                )
            choice = Choice(groups=(group,), include_retry=True)
            log_end = broker.view.log_max_offset()
            try:
                seen = look(broker.view, broker, self.now_ms(), choice)
            except NotFound:
                return [f"group {group} has no progress and no members"]
            waiting = sum(1 for _ in waiting_retries(broker.view, group))
            doubts = levels_in_doubt(broker.view, group)
            due = self._due(broker.view, {row.topic for row in queue_rows(seen)})
            # A retry that was delivered between the two is in neither of them, but in the log.
            if broker.view.log_max_offset() != log_end:
                return [f"messages are stored while the progress of group {group} is read"]
            if left(seen) is Left.NOTHING and not waiting and not due and not doubts:
                return []
            found = [
                f"group {group} has read {row.topic}, queue {row.queue_id}, to "
                f"{_known(row.committed_offset)} of {row.max_offset}"
                for row in queue_rows(seen)
                if row.lag != 0 and row.max_offset != row.min_offset
            ]
            if waiting:
                found.append(f"retries of group {group} that wait for their time: {waiting}")
            found += [f"delayed messages of {topic} that are due: {due[topic]}" for topic in due]
            found += map(doubt_of_level, doubts)
            return found or [f"the progress of group {group} is unknown"]

    def _due(self, view: StoreView, topics: Collection[str]) -> Counter[str]:
        """Delayed messages of some topics that wait though they are due by this clock."""
        now = self.now_ms()
        return Counter(
            one.topic
            for level in levels(view)
            for one in delayed(view, level)
            if one.topic in topics and one.due_timestamp <= now
        )


def _topics(view: StoreView) -> list[str]:
    kinds = topic_kinds(view)
    held = {
        topic
        for topic, queue_id in view.queues()
        if view.max_offset_in_queue(topic, queue_id) > view.min_offset_in_queue(topic, queue_id)
    }
    return sorted(topic for topic in held if kinds.of(topic) != "system")


def _known(offset: int | None) -> str:
    return "no place that is known" if offset is None else str(offset)
