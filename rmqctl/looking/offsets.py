"""Facts about the progress of groups: the short list."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from analytics.unread import unread
from rmqctl.looking.offset_inspect import Chosen, note_of, places
from rmqctl.rows.offsets import OffsetRow

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker
    from rmqctl.looking.offset_source import Offsets


def offset_rows(
    broker: "EmbeddedBroker",
    table: "Offsets",
    groups: Collection[str] | None,
    topics: Collection[str] | None,
) -> Iterator[OffsetRow]:
    """The progress of groups in topics, every read queue of a topic included; see :func:`places`.

    NotFound for a named group without progress anywhere and for a named topic that is unknown.
    """
    for group, topic, queue_id, committed in places(broker, table, Chosen(groups, topics)):
        what = unread(broker.view, topic, queue_id, committed)
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
