"""Progress: how far a group is in a queue."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from storage.format.shapes import MAX_LONG

MAX_OFFSET: Final = MAX_LONG - 1
"""The largest offset that can be committed: pending commits are stored + 1, as a long."""


class ConsumeFromWhere(StrEnum):
    """Where a group without progress starts; one with progress goes on from there."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class OffsetCommit(NamedTuple):
    """Progress of a group in a queue: the next offset to consume, from 0 to ``MAX_OFFSET``.

    ``generation`` is the one that ``query_consumer_offset`` gave; see OffsetQuery.
    """

    topic: str
    queue_id: int
    offset: int
    generation: int = 0


class OffsetQuery(NamedTuple):
    """A broker's record of a group's progress in a queue.

    ``offset`` None: nothing (QUERY_NOT_FOUND), the client decides where to begin. ``stored`` is
    False for an offset that the broker derived by the rule of young queues. ``generation`` counts
    deliberate moves (resets); a commit that names an older one is dropped.
    """

    offset: int | None
    generation: int = 0
    stored: bool = True


class ProgressPastEnd(NamedTuple):
    """Progress that was found past the end of its queue: what ``correct_consumer_offset`` takes.

    ``end`` is the end at that time. ``progress``, in its ``generation``, is what shows that it lay
    past the end; None where it is not known.
    """

    topic: str
    queue_id: int
    end: int
    generation: int = 0
    progress: int | None = None


class OffsetApi(Protocol):
    """Committed offsets."""

    def query_consumer_offset(self, group: str, topic: str, queue_id: int) -> OffsetQuery:
        """How far a group is in a queue (QUERY_CONSUMER_OFFSET)."""
        ...

    def update_consumer_offsets(
        self, group: str, commits: Sequence[OffsetCommit]
    ) -> list[OffsetQuery]:
        """Commit progress, and give what holds now (UPDATE_CONSUMER_OFFSET).

        Merged, never overwritten: within a generation the larger offset stays. A result of a newer
        generation means that the progress was moved: go on from its offset. Raises
        BrokerSystemError for a number that cannot be stored, and nothing is committed.
        """
        ...

    def note_consumer_offset(self, group: str, commit: OffsetCommit) -> None:
        """Note progress where it survives this process, as a pull that carries it does.

        It reaches the device with the next commit of the broker, some seconds later. Meant for what
        is costly to repeat: a message that was given back.
        """
        ...

    def correct_consumer_offset(
        self,
        group: str,
        topic: str,
        queue_id: int,
        end: int | None = None,
        generation: int = 0,
        progress: int | None = None,
    ) -> OffsetQuery:
        """Move progress that lies past the end of its queue back to the end; gives what holds then.

        ``end`` is the end when ``progress`` was found past it, in its ``generation``: what was
        stored since is consumed, also where the queue has grown past the progress. Progress of
        another generation stays. An ``end`` of None is the end now. Clients of RocketMQ overwrite
        progress after OFFSET_ILLEGAL; commits are merged here. What lies in the queue, or before
        it, stays: an ``end`` without ``progress`` moves only what lies past the end of now, too.
        """
        ...

    def consumer_offsets(self, group: str | None = None) -> dict[tuple[str, str], dict[int, int]]:
        """All committed offsets: (group, topic) to queue id to offset (GET_ALL_CONSUMER_OFFSET)."""
        ...
