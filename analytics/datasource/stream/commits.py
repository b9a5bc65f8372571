"""Writing a stream's position as a group's progress after each batch: ``commitGroup``.

Spark says that a batch is done in two ways: it calls ``commit`` with the batch's end when the next
one is planned, and it gives that end to ``latestOffset`` at each trigger, also if there is nothing
new. The second comes first, so the progress is written there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from analytics.errors import GroupProgressError
from analytics.report.scan import known_topics, progress_of
from analytics.sink.group_progress import GroupProgress
from storage.read.log_offsets import first_at
from storage.readonly import StoreView

from .positions import Position

if TYPE_CHECKING:
    from analytics.datasource.query.options import Options
    from analytics.report.stores import StoreRef
    from analytics.sink.group_progress import Queue

Done: TypeAlias = "tuple[str, StoreRef, Position]"
"""How far a stream has come: the key of a store in the checkpoint, the store, the position."""


class ProgressWriter:
    """Writes the progress of the group that a stream has. Pickles."""

    def __init__(self, options: Options, group: str) -> None:
        self._topics = options.topics
        self._goes_on = options.starting.group == group
        self._progress = GroupProgress(group)
        self._written: dict[str, Position] = {}
        self._begins: dict[str, Position] = {}
        """Where a new stream begins: what lies before is not its work."""
        self._offsets: dict[str, dict[Queue, int]] = {}

    def begin(self, stores: Sequence[StoreRef]) -> None:
        """Check stores when the stream starts; see ``GroupProgress.begin``."""
        for ref in stores:
            self._progress.begin(ref.path)

    def begin_new(self, stores: Sequence[StoreRef], begins: Mapping[str, Position]) -> None:
        """Check stores for a stream without a checkpoint, and note where it begins. Raises
        GroupProgressError if the group has progress in what is read, unless the stream goes on from
        there. Spark asks for the beginning more than once until the first batch is done."""
        self._begins = dict(begins)
        if self._goes_on or self._written:
            return
        group = self._progress.group
        for ref in stores:
            with StoreView.open(ref.path) as view:
                for (name, topic), offsets in progress_of(view).items():
                    if name == group and any(
                        self._topics.wants(ref.broker, topic, queue_id) for queue_id in offsets
                    ):
                        raise GroupProgressError(
                            f"commitGroup: group {group} has progress in {topic} of {ref.broker}, "
                            "and this is a new stream, which would move it; go on from there with "
                            f"startingOffset=group:{group}, or give the stream a group of its own"
                        )

    def has_written(self, positions: Mapping[str, Any]) -> bool:
        """Whether all positions of a checkpoint are written."""
        return all(self._written.get(key) == Position.of(at) for key, at in positions.items())

    def write(self, done: Iterable[Done]) -> None:
        """Write the progress up to some positions; see ``GroupProgress.commit``."""
        for key, ref, position in done:
            if position in (self._written.get(key), self._begins.get(key)):
                continue
            before = self._offsets.get(ref.path, {})
            offsets = self._offsets_at(ref, position, before)
            if not offsets or self._progress.commit(ref.path, offsets):
                self._offsets[ref.path] = {**before, **offsets}
                self._written[key] = position

    def _offsets_at(
        self, ref: StoreRef, position: Position, before: Mapping[Queue, int]
    ) -> dict[Queue, int]:
        """The first message after a position in each queue, where it is another than before."""
        found: dict[Queue, int] = {}
        with StoreView.open(ref.path) as view:
            queues = {
                (topic, queue_id): None
                for topic, queue_id in view.queues()
                if self._topics.wants(ref.broker, topic, queue_id)
            }
            bounds = view.each_queue_bounds(list(queues))
            for queue, (low, high) in zip(queues, bounds, strict=True):
                if before.get(queue) != high:
                    at = first_at(view, *queue, position.offset, low, high)
                    found[queue] = max(at, min(high, position.floor(*queue)))
            topics = known_topics(view)
            for topic in {topic for topic, _ in queues} & topics.keys():
                for queue_id in range(topics[topic].read_queue_nums):
                    unused = (topic, queue_id) not in queues  # it never had a message
                    if unused and self._topics.wants(ref.broker, topic, queue_id):
                        found[topic, queue_id] = 0
        return {queue: at for queue, at in found.items() if before.get(queue) != at}
