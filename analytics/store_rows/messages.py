"""Messages of the queues of a topic, and those that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.errors import BodyError
from storage.read.replaced import places_without_message

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .wanted import Wanted

_UNITS: Final = 64


def messages_of(
    view: StoreView, topic: str, wanted: Wanted, begins: Mapping[int, int] | None = None
) -> Iterator[MessageExt]:
    """The messages of a topic, queue by queue; ``begins`` are offsets to begin at, by queue.

    A place from which a repair took the message is none of them. ``wanted.damaged`` gets a sentence
    for each message that cannot be read.
    """
    for name, queue_id in view.queues():
        if name == topic:
            yield from _of_queue(view, topic, queue_id, (begins or {}).get(queue_id, 0), wanted)


def _of_queue(
    view: StoreView, topic: str, queue_id: int, begin: int, wanted: Wanted
) -> Iterator[MessageExt]:
    low, high = view.queue_bounds(topic, queue_id)
    at = max(low, begin)
    while at < high:
        units = view.unit_bytes(topic, queue_id, at, min(_UNITS, high - at))
        found = view.messages_of_units(topic, queue_id, at, units) if units else [None]
        for offset, message in enumerate(found, at):
            if message is not None:
                yield message
            elif offset >= view.min_offset_in_queue(topic, queue_id) and not (
                units and places_without_message(view, topic, queue_id, offset, offset + 1)
            ):
                wanted.damaged(
                    f"{view.root}: message {offset} of {topic}, queue {queue_id}, cannot be read"
                )
        at += len(units) // CQ_STORE_UNIT_SIZE or 1


def body_of(message: MessageExt, wanted: Wanted) -> bytes | None:
    """The body as the sender gave it; None if it is not asked for, or cannot be unpacked."""
    try:
        return bytes(message.body) if wanted.bodies else None
    except BodyError:
        return None
