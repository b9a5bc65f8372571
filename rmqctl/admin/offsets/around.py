"""The messages before and after the offset of a group, or another position."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rmqctl.admin.changes import Warn, no_warning
from storage.format.errors import BodyError
from storage.read.replaced import places_without_message

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .inspection import Place


T = TypeVar("T")


class Around(NamedTuple):
    """How many messages before and after a position."""

    before: int
    after: int


def messages_around(
    view: "StoreView",
    places: Iterable["Place"],
    position_of: "Callable[[Place], int | None]",
    around: Around,
    make_row: "Callable[[str, int, MessageExt], T]",
    *,
    tell: Warn = no_warning,
    left_out: Warn = no_warning,
) -> Iterator[T]:
    """The messages around a position in each place, as rows in queue order.

    ``position_of`` gives an offset in a queue, such as the committed one; None: there is none.
    ``make_row`` makes a row of the group, the position and a message. ``tell`` gets a sentence
    about each thing that is not there: an offset, messages, one that a repair has taken out.
    ``left_out`` gets one about each message that cannot be read.
    """
    for place in places:
        topic, queue_id = place.topic, place.queue_id
        where = f"queue {queue_id} of topic {topic}"
        position = position_of(place)
        if position is None:
            tell(f"group {place.group} has no progress in {where}")
            continue
        low, high = view.queue_bounds(topic, queue_id)
        first = max(low, position - around.before)
        end = min(high, position + around.after)
        if first >= end:
            has = f"it has {low} to {high - 1}" if low < high else "it is empty"
            tell(f"{where} has no messages around offset {position}: {has}")
        for offset in range(first, end):
            unit = view.unit(topic, queue_id, offset)
            message = None
            if unit is not None:
                message = view.message_of_unit(topic, queue_id, offset, unit)
            try:
                if message is not None:
                    yield make_row(place.group, position, message)
                    continue
            except BodyError:
                pass
            if places_without_message(view, topic, queue_id, offset, offset + 1):
                tell(f"offset {offset} of {where} has no message: a repair has taken it out")
                continue
            left_out(
                f"the message at offset {offset} of {where} cannot be read; "
                "'rmqctl store fsck' shows why"
            )
