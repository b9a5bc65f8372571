"""Facts about the progress of groups."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from analytics.unread import unread
from broker.validation import check_group, check_topic
from rmqctl.errors import NotFound
from rmqctl.rows.offsets import OffsetRow

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker


def offset_rows(
    broker: "EmbeddedBroker", groups: Collection[str] | None, topics: Collection[str] | None
) -> Iterator[OffsetRow]:
    """The progress of groups in topics, every read queue of a topic included.

    NotFound for a named group without progress anywhere and for a named topic that is unknown.
    """
    table = broker.consumer_offsets()
    known = broker.topics()
    for group in groups or ():
        if not any(group == name for name, _ in table):
            check_group(group)
            raise NotFound(f"group {group} has no progress in {broker.view.root}")
    for topic in topics or ():
        if topic not in known and not any(topic == name for _, name in table):
            check_topic(topic)
            raise NotFound(f"topic {topic} does not exist in {broker.view.root}")
    for (group, topic), offsets in sorted(table.items()):
        if (groups and group not in groups) or (topics and topic not in topics):
            continue
        config = known.get(topic)
        queues = set(offsets).union(range(config.read_queue_nums) if config else ())
        for queue_id in sorted(queues):
            yield _row(broker, group, topic, queue_id, offsets.get(queue_id))


def _row(
    broker: "EmbeddedBroker", group: str, topic: str, queue_id: int, committed: int | None
) -> OffsetRow:
    what = unread(broker.view, topic, queue_id, committed)
    note = None
    if what.ahead:
        note = f"{what.ahead} beyond the end"
    elif what.lost:
        note = f"{what.lost} deleted unread"
    return OffsetRow(
        group,
        topic,
        broker.name,
        queue_id,
        what.min_offset,
        committed,
        what.max_offset,
        what.lag,
        what.state,
        note,
    )
