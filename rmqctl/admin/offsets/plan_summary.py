"""The summary of a plan: sums over all queues, and which tags are read again or skipped."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from analytics.lag.queue_position import QueuePosition, oldest_unread_timestamp, unread_bytes
from analytics.lag.totals import is_unknown
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.parse.durations import format_duration, format_size
from storage.read.gaps import after_gap

from .plan import Step

if TYPE_CHECKING:
    from storage.readonly import StoreView

CHEAP: Final = 20_000_000
"""The tags of at most so many messages are counted by default: about a second."""
_SHOWN_TAGS: Final = 10
_INTS_PER_UNIT: Final = CQ_STORE_UNIT_SIZE // 4
_CODE_AT: Final = 4
"""Which of a unit's five ints is the tag's hash; the one before it is only its sign."""


def plan_summary(
    view: "StoreView", steps: Sequence[Step], now_ms: int, *, full: bool | None
) -> Iterator[str]:
    """Sentences about a plan, none about an empty one. Without ``full`` no message is read;
    None: tags are counted if there are at most CHEAP messages."""
    unread = sum(step.position.read_queues is not None for step in steps)
    if unread:
        yield f"{unread} of {len(steps)} queues are read by no group any more and are not counted"
    steps = [step for step in steps if step.position.read_queues is None]
    if not steps:
        return
    again = [step for step in steps if (step.distance or 0) < 0]
    skipped = [step for step in steps if (step.distance or 0) > 0]
    begun = [s for s in steps if s.position.offset is None and s.target is not None]
    ended = [s for s in steps if s.position.offset is not None and s.target is None]
    rest = len(steps) - len(again) - len(skipped) - len(begun) - len(ended)
    parts = [
        _moved(view, again, "back", "read again", full=full),
        _moved(view, skipped, "forward", "skipped", full=full),
        f"{len(begun)} begin" if begun else "",
        f"{len(ended)} end" if ended else "",
        f"{rest} unchanged" if rest else "",
    ]
    queues = f"{len(steps)} queue{'s' if len(steps) != 1 else ''}"
    parts.append(_lags(steps))
    if full is not False:
        ages = [_age(view, steps, now_ms, of) for of in (_old, _new)]
        parts.append(f"oldest unread {ages[0]} -> {ages[1]}")
    yield f"{queues}: {'; '.join(part for part in parts if part)}"
    for moved, what in ((again, "read again"), (skipped, "skipped")):
        total = sum(end - first for first, end in (step.span for step in moved))
        if not total or full is False:
            continue
        if full is None and total > CHEAP:
            yield f"{what}, by tag: not counted, as it is {total:,} messages; --preview full does"
        else:
            yield f"{what}, by tag: {_tags(view, moved)}"


def _old(step: Step) -> QueuePosition:
    return QueuePosition(step.position.low, step.position.offset, step.position.high)


def _new(step: Step) -> QueuePosition:
    return QueuePosition(step.position.low, step.target, step.position.high)


def _lags(steps: Sequence[Step]) -> str:
    """The lag of all queues, before and after; what is known in part is never 0."""
    sums = []
    for of in (_old, _new):
        places = [of(step) for step in steps]
        least = "at least " if any(map(is_unknown, places)) else ""
        total = sum(place.lag or 0 for place in places)
        sums.append("unknown" if least and not total else f"{least}{total:,}")
    return f"lag {sums[0]} -> {sums[1]}"


def _age(
    view: "StoreView", steps: Sequence[Step], now_ms: int, of: Callable[[Step], QueuePosition]
) -> str:
    """How long ago the oldest message was stored that is unread in any of the queues."""
    found = []
    is_partly_known = False
    for step in steps:
        queue, place = step.position.queue, of(step)
        stored = oldest_unread_timestamp(view, queue.topic, queue.queue_id, place)
        if stored is not None:
            found.append(stored)
        elif is_unknown(place) or place.first_unread is not None:
            is_partly_known = True
    if not found:
        return "unknown" if is_partly_known else "none"
    least = "at least " if is_partly_known else ""
    return f"{least}{format_duration(max(0, now_ms - min(found)))}"


def _moved(
    view: "StoreView", steps: Sequence[Step], where: str, what: str, *, full: bool | None
) -> str:
    if not steps:
        return ""
    messages = sum(end - first for first, end in (step.span for step in steps))
    noun = "message" if messages == 1 else "messages"
    volume = "" if full is False else f" ({_volume(view, steps)})"
    return f"{len(steps)} {where}, {messages:,} {noun}{volume} {what}"


def _volume(view: "StoreView", steps: Iterable[Step]) -> str:
    size = 0
    for step in steps:
        first, end = step.span
        if first < end:
            _, topic, queue_id = step.position.queue
            found = unread_bytes(view, topic, queue_id, (first,), end)[first]
            if found is None:
                return "of unknown size"
            size += found
    return format_size(size)


def _tags(view: "StoreView", steps: Iterable[Step]) -> str:
    counts: Counter[str] = Counter()
    names: dict[int, str] = {}
    for step in steps:
        _, topic, queue_id = step.position.queue
        first, end = step.span
        while first < end:
            units = view.unit_view(topic, queue_id, first, end)
            if units is None:
                following = after_gap(view, topic, queue_id, first, end)
                counts["(deleted)"] += following - first
                first = following
                continue
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
