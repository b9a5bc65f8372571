"""The foot of a plan: sums over all queues, and which tags are read again or passed over."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from analytics.unread import bytes_behind
from rmqctl.moving.plan import Step
from rmqctl.text.durations import format_size
from storage.format.unit import CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from storage.readonly import StoreView

CHEAP: Final = 5_000_000
"""So many messages' tags are counted without being asked: about a second."""
_SHOWN_TAGS: Final = 10
_INTS_PER_UNIT: Final = CQ_STORE_UNIT_SIZE // 4
_CODE_AT: Final = 4
"""Which of a unit's five ints is the tag's hash; the one before it is only its sign."""


def foot(view: "StoreView", steps: Sequence[Step], *, count_tags: bool | None) -> Iterator[str]:
    """Sentences about a plan. ``count_tags`` None: if there are at most CHEAP messages."""
    again = [step for step in steps if (step.distance or 0) < 0]
    skipped = [step for step in steps if (step.distance or 0) > 0]
    begun = [s for s in steps if s.stand.offset is None and s.target is not None]
    ended = [s for s in steps if s.stand.offset is not None and s.target is None]
    rest = len(steps) - len(again) - len(skipped) - len(begun) - len(ended)
    parts = [
        _moved(view, again, "go back", "read again"),
        _moved(view, skipped, "go forward", "skipped"),
        f"{len(begun)} begin" if begun else "",
        f"{len(ended)} end" if ended else "",
        f"{rest} unchanged" if rest else "",
    ]
    yield f"{len(steps)} queues: " + "; ".join(part for part in parts if part)
    for moved, what in ((again, "read again"), (skipped, "skipped")):
        total = sum(behind - first for first, behind in (step.span for step in moved))
        if not total or count_tags is False:
            continue
        if count_tags is None and total > CHEAP:
            yield f"{what}, by tag: not counted, as it is {total:,} messages; --preview full does"
        else:
            yield f"{what}, by tag: {_tags(view, moved)}"


def _moved(view: "StoreView", steps: Sequence[Step], where: str, what: str) -> str:
    if not steps:
        return ""
    messages = size = 0
    known = True
    for step in steps:
        first, behind = step.span
        messages += behind - first
        if first < behind:
            _, topic, queue_id = step.stand.place
            found = bytes_behind(view, topic, queue_id, (first,), behind)[first]
            known = known and found is not None
            size += found or 0
    volume = format_size(size) if known else "unknown size"
    return f"{len(steps)} {where}, {messages:,} messages ({volume}) {what}"


def _tags(view: "StoreView", steps: Iterable[Step]) -> str:
    counts: Counter[str] = Counter()
    names: dict[int, str] = {}
    for step in steps:
        _, topic, queue_id = step.stand.place
        first, behind = step.span
        while first < behind:
            units = view.unit_view(topic, queue_id, first, behind)
            if units is None:
                counts["(deleted)"] += behind - first
                break
            codes = array("i", units.cast("i")[_CODE_AT::_INTS_PER_UNIT].tobytes())
            for code, count in Counter(codes).items():
                if code not in names:
                    names[code] = _name(view, topic, queue_id, first + codes.index(code))
                counts[names[code]] += count
            first += len(codes)
    shown = [f"{name} {count:,}" for name, count in counts.most_common(_SHOWN_TAGS)]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {more} more tags" if more else "")


def _name(view: "StoreView", topic: str, queue_id: int, offset: int) -> str:
    """The tag of a message, which stands for all of the same hash."""
    from rmqctl.output.values import escape_controls

    unit = view.unit(topic, queue_id, offset)
    message = unit and view.message_of_unit(topic, queue_id, offset, unit)
    if not message:
        return "(unreadable)"
    return escape_controls(message.tags) if message.tags else "(no tag)"
