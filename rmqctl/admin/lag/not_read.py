"""Unread messages of groups in queues that no consumer reads, as their topics have fewer queues."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.offsets.queues import read_queues_without
from storage.counted import counted

if TYPE_CHECKING:
    from analytics.lag.counts import GroupCounts
    from analytics.lag.lag_snapshot import GroupLag, LagSnapshot
    from storage.configs.topics import TopicConfig

_NAMED: Final = 5
"""Queues that are named; of further ones their number is given."""


class NotReadQueue(NamedTuple):
    """A queue of a group with unread messages, from the topic's ``readQueueNums`` on."""

    group: str
    topic: str
    queue_id: int
    unread: int

    @property
    def place(self) -> tuple[str, str, int]:
        """Group, topic and queue id: without the count, which changes."""
        return self.group, self.topic, self.queue_id


def not_read_queues(
    seen: "LagSnapshot", topics: "Mapping[str, TopicConfig]"
) -> Iterator[NotReadQueue]:
    """The queues with unread messages that the settings of ``topics`` leave unread."""
    # Counts, where they are kept, make no rates; 'lag show' keeps none, so they are not imported.
    groups: Sequence[GroupLag | GroupCounts] = getattr(seen.group_lags, "counts", seen.group_lags)
    for one in groups:
        config = topics.get(one.topic)
        if not one.queues or read_queues_without(config, one.queues[-1].queue_id) is None:
            continue  # mostly: they are by number
        for queue in one.queues:
            if queue.unread.lag and read_queues_without(config, queue.queue_id) is not None:
                yield NotReadQueue(one.group, one.topic, queue.queue_id, queue.unread.lag)


def not_read_sentences(queues: Sequence[NotReadQueue]) -> Iterator[str]:
    """A sentence for each of the first queues, and one about the others."""
    for one in queues[:_NAMED]:
        yield (
            f"group {one.group} in {one.topic}: queue {one.queue_id} "
            f"({counted(one.unread, 'message')} unread) is not read; 'rmqctl topic alter "
            f"{quote(one.topic)} --read-queues {one.queue_id + 1}' makes it read"
        )
    if len(queues) > _NAMED:
        yield f"{len(queues) - _NAMED} more queues with unread messages are not read"
