"""All messages with a tag, found by the hashes in the queues."""

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.message import SCHEDULE_TOPIC
from storage.read.gaps import unit_runs

if TYPE_CHECKING:
    from storage.read.tag_filter import TagFilter
    from storage.readonly import StoreView

_UNITS: Final = 4096
_LEAST_HASH: Final = -(1 << 31)


def find_tag(view: "StoreView", topics: Iterable[str], tags: "TagFilter") -> Iterator[int]:
    """Log offsets, ascending, of messages whose tag has the hash of a wanted tag.

    Other tags may have the same hash. Queues whose units have another value than the hash (delayed
    messages, stores with consumequeue_ext) are included completely.
    """
    wanted = frozenset(topics)
    queues = [queue for queue in view.queues() if queue[0] in wanted]
    return merge(*(_in_queue(view, topic, queue_id, tags) for topic, queue_id in queues))


def _in_queue(view: "StoreView", topic: str, queue_id: int, tags: "TagFilter") -> Iterator[int]:
    position, end = view.queue_bounds(topic, queue_id)
    every = topic == SCHEDULE_TOPIC
    for _, units in unit_runs(view, topic, queue_id, position, end, _UNITS):
        for offset, _, code in CQ_STORE_UNIT.iter_unpack(units):
            if every or code < _LEAST_HASH or tags.matches(code):
                yield offset
