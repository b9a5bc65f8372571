"""The messages before and after the offset of a group, or another position."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqctl.consume.selection import offset_of
from rmqctl.parse.positions import Bound, Point
from storage.format.errors import BodyError

from .inspect_rows import around_row

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .inspection import Place


class Around(NamedTuple):
    """How many messages before and after a position."""

    before: int
    after: int


def parse_around(text: str) -> Around:
    """``B,A``, or one number for both; ValueError for anything else."""
    found = re.fullmatch(r"\s*(\d{1,18})(?:\s*,\s*(\d{1,18}))?\s*", text, re.ASCII)
    if not found:
        raise ValueError(f"{text!r} is not how many messages before and after (such as 5,5)")
    before = int(found[1])
    return Around(before, before if found[2] is None else int(found[2]))


def around_rows(
    broker: "EmbeddedBroker",
    places: Iterable["Place"],
    at: Point,
    around: Around,
    body_form: str,
    tell: Callable[[str], None],
) -> Iterator[Any]:
    """The messages around a position in each place, as AroundRows in queue order.

    ``tell`` gets a sentence about each thing that is missing: an offset, messages, a readable one.
    """
    for place in places:
        topic, queue_id = place.topic, place.queue_id
        where = f"queue {queue_id} of topic {topic}"
        position = _position(broker, place, at)
        if position is None:
            tell(f"group {place.group} has no progress in {where}")
            continue
        low, high = broker.view.queue_bounds(topic, queue_id)
        first = max(low, position - around.before)
        end = min(high, position + around.after)
        if first >= end:
            has = f"it has {low} to {high - 1}" if low < high else "it is empty"
            tell(f"{where} has no messages around offset {position}: {has}")
        for offset in range(first, end):
            row = _row(broker, place, offset, position, body_form)
            if row is None:
                tell(f"the message at offset {offset} of {where} can not be read")
            else:
                yield row


def _position(broker: "EmbeddedBroker", place: "Place", at: Point) -> int | None:
    if at.bound is Bound.STORED:
        return place.committed
    if at.bound is Bound.OFFSET:
        return at.value
    return offset_of(broker, place.topic, place.queue_id, at)


def _row(
    broker: "EmbeddedBroker", place: "Place", offset: int, position: int, body_form: str
) -> Any | None:
    view = broker.view
    unit = view.unit(place.topic, place.queue_id, offset)
    if unit is None:
        return None
    message = view.message_of_unit(place.topic, place.queue_id, offset, unit)
    try:
        return None if message is None else around_row(place.group, position, message, body_form)
    except BodyError:
        return None
