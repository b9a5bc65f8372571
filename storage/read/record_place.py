"""The name of a record that cannot be read: the place in a queue whose unit points at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.message import LMQ_PREFIX
from storage.format.record import RecordError, decode_record

from .log_offsets import first_at, place_from

if TYPE_CHECKING:
    from storage.readonly import StoreView

_MOST_QUEUES: Final = 1_000
"""With more of them, looking into each one takes too long for a warning."""


class RecordPlace(NamedTuple):
    """A place in a queue; ``msg_id`` is None where the record does not hold the same place."""

    topic: str
    queue_id: int
    queue_offset: int
    msg_id: str | None


def place_of_record(view: StoreView, commitlog_offset: int) -> RecordPlace | None:
    """Find the unit that points at a commit log offset; None if none does."""
    queues = [queue for queue in view.queues() if not queue[0].startswith(LMQ_PREFIX)]
    for topic, queue_id in queues if len(queues) <= _MOST_QUEUES else ():
        low, high = view.queue_bounds(topic, queue_id)
        at = first_at(view, topic, queue_id, commitlog_offset, low, high)
        at, place = place_from(view, topic, queue_id, at, high)
        if place == commitlog_offset:
            msg_id = _id_of(view, commitlog_offset, (topic, queue_id, at))
            return RecordPlace(topic, queue_id, at, msg_id)
    return None


def _id_of(view: StoreView, commitlog_offset: int, place: tuple[str, int, int]) -> str | None:
    log = view.files.log
    position = commitlog_offset % log.file_size
    file = log.at(commitlog_offset - position)
    if file is None:
        return None
    try:
        message = decode_record(file.view, position)
    except RecordError:
        return None
    own = (message.topic, message.queue_id, message.queue_offset)
    return message.msg_id if own == place else None
