"""Due times of the delay topic, by level and target."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from analytics.lag.delayed import (
    DelayedMessages,
    Level,
    doubt_of_level,
    levels,
    messages_in_doubt,
    waiting,
)
from broker.schedule.schedule import DELAY_FOR_A_PERIOD_MS
from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.message_filter import EVERY_MESSAGE, MessageFilter
from rmqctl.admin.services import service
from storage.clock import now_ms as clock_ms
from storage.coordination.leadership import BROKER_SERVICES
from storage.counted import counted
from storage.format.delay import CLOCK_STEP_MS
from storage.format.message import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX

from .retries import takes
from .rows import AgendaRow, DelayedRow

if TYPE_CHECKING:
    from storage.readonly import StoreView

AHEAD: Final = "AHEAD"
STRANDED: Final = "STRANDED"
"""The store no longer has the level, so nothing delivers its messages."""
LATE_MS: Final = DELAY_FOR_A_PERIOD_MS + CLOCK_STEP_MS
"""Overdue for longer than this is a problem: a level that failed is tried again after 10 s."""


Held = Mapping[Level, Iterable[tuple[str, int]]]
"""The target and the due time of each message that waits, by level."""


def agenda(
    view: "StoreView", now_ms: int | None = None, held: Held | None = None
) -> Iterator[AgendaRow]:
    """One row for each level and target, by level, then by due time; None: ``held`` is read here.

    A level whose saved offset is past the end of its queue has a row, too: it is unknown how many
    of the messages there were delivered, if it has any, and no process will deliver the others.
    """
    now_ms = clock_ms() if now_ms is None else now_ms
    running = bool(service(view, BROKER_SERVICES)["running"])
    for level in levels(view) if held is None else held:
        dues: dict[str, list[int]] = {}
        for topic, due in _held(view, level) if held is None else held[level]:
            dues.setdefault(topic, []).append(due)
        state = _state(level, min(map(min, dues.values()), default=None), now_ms, running=running)
        if state == AHEAD and not dues:
            yield _row(level, None, [], now_ms, state)
        for topic in sorted(dues, key=lambda name: (min(dues[name]), name)):
            yield _row(level, topic, dues[topic], now_ms, state)


def _held(view: "StoreView", level: Level) -> Iterator[tuple[str, int]]:
    return ((one.topic, one.due_timestamp) for one in waiting(view, level))


def stranded(view: "StoreView", delays: int) -> dict[int, int | None]:
    """Number of messages that wait in levels above the number of ``delays``, by level; None where
    that is unknown."""
    counts = {
        level.level: None if level.is_in_doubt else sum(1 for _ in waiting(view, level))
        for level in levels(view)
        if level.level > delays
    }
    return {level: count for level, count in counts.items() if count != 0}


def stranded_sentence(counts: Mapping[int, int | None]) -> str:
    """A warning about messages in levels that do not exist, with the remedy; None: unknown."""
    where = ", ".join(
        f"{'an unknown number' if count is None else f'{count:,}'} in level {level}"
        for level, count in sorted(counts.items())
    )
    known = [count for count in counts.values() if count is not None]
    what = counted(sum(known), "message waits", "messages wait")
    if len(known) < len(counts):
        what = "messages may wait"
    return (
        f"{what} in delay levels that messageDelayLevel lacks ({where}): nothing is delivered "
        f"until 'rmqctl broker config set messageDelayLevel' gives it at least {max(counts)} "
        "levels again"
    )


def _row(level: Level, topic: str | None, dues: list[int], now_ms: int, state: str) -> AgendaRow:
    return AgendaRow(
        level.level,
        topic,
        None if topic is None else group_of(topic),
        None if level.is_in_doubt else len(dues),
        min(dues, default=None),
        max(dues, default=None),
        None if level.is_in_doubt else sum(due <= now_ms for due in dues),
        state,
        level.delay_ms,
        level.saved_offset,
        level.min_offset,
        level.max_offset,
    )


def delayed_messages(
    view: "StoreView", wanted: MessageFilter = EVERY_MESSAGE, left_out: Warn = no_warning
) -> list[DelayedRow]:
    """Each waiting message that a filter selects, by due time.

    ``left_out`` is called with a sentence for a message whose body the filter needs and that
    cannot be unpacked, and for a level whose saved offset is past its end and that has messages
    that the filter selects.
    """
    held = [one for one in messages_in_doubt(view) if takes(wanted, one, left_out)]
    for level_id in dict.fromkeys(one.level for one in held):
        left_out(doubt_of_level(level_id))
    rows = [
        delayed_row(one)
        for level in levels(view)
        for one in waiting(view, level)
        if takes(wanted, one, left_out)
    ]
    return sorted(rows, key=lambda row: (row.due_timestamp, row.commitlog_offset))


def delayed_row(one: DelayedMessages) -> DelayedRow:
    """The row of a message that waits."""
    return DelayedRow(*one.as_row(), one.message.offset_msg_id)


def group_of(topic: str) -> str | None:
    """The group whose retries or dead letters a topic holds."""
    for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
        if topic.startswith(prefix):
            return topic.removeprefix(prefix)
    return None


def _state(level: Level, first_due: int | None, now_ms: int, *, running: bool) -> str:
    if level.is_ahead:
        return AHEAD
    if level.delay_ms is None:
        return STRANDED if first_due is not None else "OK"
    if first_due is None or first_due > now_ms:
        return "OK"
    if not running:
        return "OVERDUE"
    return "STUCK" if first_due < now_ms - LATE_MS else "OK"
