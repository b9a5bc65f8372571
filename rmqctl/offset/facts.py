"""Facts about the progress of groups: the short list."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from analytics.lag.queue_position import QueuePosition

from .inspection import Chosen, note_of, places
from .rows import OffsetRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.queue.reader import QueueBounds

    from .source import CommittedOffsets


def offset_rows(
    broker: "EmbeddedBroker",
    known: "CommittedOffsets",
    groups: Collection[str] | None,
    topics: Collection[str] | None,
) -> Iterator[OffsetRow]:
    """The progress of groups in topics, every read queue of a topic included; see :func:`places`.

    All rows of a queue have the bounds of one look. NotFound for a named group without progress
    anywhere and for a named topic that is unknown.
    """
    bounds: dict[tuple[str, int], QueueBounds] = {}
    for group, topic, queue_id, committed in places(broker, known, Chosen(groups, topics)):
        low_high = bounds.get((topic, queue_id))
        if low_high is None:
            low_high = bounds[topic, queue_id] = broker.view.queue_bounds(topic, queue_id)
        what = QueuePosition(low_high.min_offset, committed, low_high.max_offset)
        yield OffsetRow(
            group,
            topic,
            broker.name,
            queue_id,
            what.min_offset,
            committed,
            what.max_offset,
            what.lag,
            what.state,
            note_of(what),
        )
