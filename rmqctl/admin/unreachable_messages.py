"""Stored messages that a change of settings makes unreachable: the sentences of the plans.

Every sentence has the number of messages and how many of them groups have not read. A queue in
which a group has no progress, or progress beyond the end, is reported as unknown, and what groups
have read by progress that is in doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.config import parse_hours
from storage.counted import counted
from storage.format.java_numbers import parse_digits
from storage.format.message import (
    LMQ_PREFIX,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    TRANS_CHECK_MAX_TIME_TOPIC,
    retry_topic,
)
from storage.parse.times import format_time
from storage.retention import LogFile, log_files, rules_of

from .next_deletions import ReadersProgress, readers_of, within
from .queues.topic_queues import bounds_from

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.config import StoreConfig
    from storage.readonly import StoreView

RETENTION: Final = frozenset(
    {
        *("file_reserved_time_hours", "delete_when", "disk_max_used_space_ratio"),
        *("clean_file_forcibly_enable", "disk_space_clean_forcibly_ratio"),
    }
)
"""Settings that determine when log files are deleted."""
_AHEAD_MS: Final = 24 * 3_600_000
_NAMED: Final = 5


class Unread(NamedTuple):
    """The messages in some queues of a topic, and the groups that have not read them."""

    messages: int
    groups: dict[str, int]
    """Groups with unread messages, with the number of messages."""
    unknown: list[str]
    """Groups without progress in one of these queues, or beyond its end, or with doubtful
    progress."""
    has_groups: bool
    """Whether any group is known to read the topic."""
    readers: ReadersProgress


def unread_of(view: StoreView, topic: str, first_queue: int = 0) -> Unread:
    """The unread messages of groups in the queues from a number on."""
    return _unread_of(view, topic, readers_of(view), first_queue)


def _unread_of(
    view: StoreView, topic: str, readers: ReadersProgress, first_queue: int = 0
) -> Unread:
    # Progress was read before the bounds: none goes beyond them meanwhile.
    bounds = bounds_from(view, topic, first_queue)
    messages = sum(high - low for low, high in bounds.values())
    groups: dict[str, int] = {}
    for group, offsets in readers.of_topic(topic).items():
        start = 0 if topic == retry_topic(group) else None
        left = 0
        for queue_id, (low, high) in bounds.items():
            offset = offsets.get(queue_id, start)
            if offset is not None and 0 <= offset <= high:
                left += high - max(low, offset)
        if left:
            groups[group] = left
    ends = {queue_id: high for queue_id, (low, high) in bounds.items() if high > low}
    unknown = readers.not_read({topic: ends}).unknown
    has_groups = bool(readers.of_topic(topic))
    return Unread(messages, dict(sorted(groups.items())), unknown, has_groups, readers)


def unread_note(view: StoreView, topic: str, queues: int) -> str:
    """The messages that fewer read queues make unreachable."""
    found = unread_of(view, topic, queues)
    note = f"queues from {queues} on are no longer read"
    if not found.messages:
        return note
    return f"{note}; {counted(found.messages, 'message')} {_lie(found.messages)} there{_by(found)}"


def unreadable_note(view: StoreView, topic: str) -> str:
    """The messages of a topic that loses its read permission; "" if it is empty."""
    found = unread_of(view, topic)
    if not found.messages:
        return ""
    return f"; {counted(found.messages, 'message')} {_lie(found.messages)} there{_by(found)}"


def retries_note(view: StoreView, group: str) -> str:
    """The retries of a group, in its retry topic and in the delay levels; "" if there are
    none."""
    from analytics.lag.delayed import doubt_of_level, levels, targets_in_doubt, waiting
    from analytics.lag.ready_retries import ready_retries

    topic = retry_topic(group)
    committed = view.consumer_offsets().get(f"{topic}@{group}", {})
    ready = ready_retries(view, topic, bounds_from(view, topic), committed)
    delayed = sum(one.topic == topic for level in levels(view) for one in waiting(view, level))
    if ready is None:
        return f"how many retries wait is unknown: progress in {topic} lies beyond its end"
    for level, targets in targets_in_doubt(view).items():
        if topic in targets:
            return doubt_of_level(level)
    total = ready + delayed
    if not total:
        return ""
    them, they = ("it", "it") if total == 1 else ("them", "they")
    return (
        f"{counted(total, 'retry', 'retries')} {'waits' if total == 1 else 'wait'}, {delayed:,} of "
        f"{them} for a delay: {they} will be delivered"
    )


def unread_of_group(view: StoreView, group: str) -> str:
    """The unread messages of a group in all topics; "" if there are none, and none unknown."""
    counts = {}
    unknown = []
    readers = readers_of(view)
    for topic in readers.topics_of(group):
        found = _unread_of(view, topic, readers)
        if group in found.groups:
            counts[topic] = found.groups[group]
        if group in found.unknown:
            unknown.append(topic)
    note = ""
    if counts:
        topics = _named([f"{topic} ({count:,})" for topic, count in counts.items()])
        note += f"; {counted(sum(counts.values()), 'message')} unread in {topics}"
    if unknown:
        what = "what else" if counts else "what"
        note += f"; {what} is unread in {_named(unknown)} is unknown"
    return note


def retention_sentence(view: StoreView, config: StoreConfig, now_ms: int) -> str | None:
    """The files that become due for deletion within a day only under the new settings; None if
    there are none."""
    files = [
        log_files(view.root, one, rules_of(view.root, one), view.log_max_offset(), now_ms)
        for one in (view.config, config)
    ]
    before, after = (_due(some, now_ms + _AHEAD_MS) for some in files)
    more = [file for file in after if file.first not in {old.first for old in before}]
    if not more:
        return None
    readers = readers_of(view)  # before the queues: no progress goes beyond them meanwhile
    size = config.mapped_file_size_commit_log
    ends: dict[str, dict[int, int]] = {}
    messages = 0
    for topic, queue_id, begin, end in within(view, more[0].first, more[-1].first + size):
        if not topic.startswith(LMQ_PREFIX):  # else it is in the queue of its own topic, too
            messages += end - begin
        ends.setdefault(topic, {})[queue_id] = end
    found = readers.not_read(ends)
    first = min(file.due_timestamp for file in more if file.due_timestamp is not None)
    parts = []
    if found.unread:
        parts.append(f"not read to the end by {_named(found.unread)}, which would lose messages")
    unknown = readers.unknown_note(_named(found.unknown), others_unread=bool(found.unread))
    if unknown:
        parts.append(unknown)
    unread = "; ".join(parts) or "every group with progress has read them"
    return (
        f"within 24 hours {counted(len(more), 'file')} of the log with "
        f"{counted(messages, 'message')} may be deleted that would otherwise stay, from "
        f"{format_time(first)} on; {unread}"
    )


def setting_sentences(
    broker: EmbeddedBroker, name: str, old: Any, value: Any, now_ms: int
) -> list[str]:
    """The messages that a new value of a setting makes unreachable."""
    view = broker.view
    if name in RETENTION:
        sentence = retention_sentence(view, replace(view.config, **{name: value}), now_ms)
        more = [] if sentence is None else [sentence]
        if name == "delete_when" and not parse_hours(value):
            ratio = view.config.disk_max_used_space_ratio
            more.append(
                "no hour is set for deletions: files are deleted only while the disk is fuller "
                f"than diskMaxUsedSpaceRatio ({ratio} %)"
            )
        return more
    if name == "broker_permission" and old & ~value & 4:
        own = [queue for queue in view.queues() if not queue[0].startswith(LMQ_PREFIX)]
        bounds = [view.queue_bounds(*queue) for queue in own]
        messages = sum(high - low for low, high in bounds)
        lie = f"{counted(messages, 'message')} {_lie(messages)} there"
        return [f"consuming will be refused in all topics; {lie}"]
    if name == "transaction_check_max" and value < old:
        return _given_up(broker, old, value)
    return []


def _given_up(broker: EmbeddedBroker, old: int, checks: int) -> list[str]:
    """The half messages that the next check gives up, as it has checked them often enough."""
    from broker.transaction.open_halves import open_halves

    groups: Counter[str] = Counter()
    for half in open_halves(broker.view, broker.progress):
        times = parse_digits(half.get_property(PROPERTY_TRANSACTION_CHECK_TIMES) or "0")
        if times is not None and checks <= times < old:
            groups[half.get_property(PROPERTY_PRODUCER_GROUP) or "no group"] += 1
    count = groups.total()
    if not count:
        return []
    whose = _named([f"{group} ({number:,})" for group, number in sorted(groups.items())])
    messages = f"{counted(count, 'half message')} of open transactions"
    were = "was" if count == 1 else "were"
    return [
        f"{messages} {were} checked {counted(checks, 'time')} or more, of {whose}: the next "
        f"check moves {'it' if count == 1 else 'them'} to {TRANS_CHECK_MAX_TIME_TOPIC}, neither "
        "committed nor rolled back, and checks no more"
    ]


def _due(files: Iterable[LogFile], until_ms: int) -> list[LogFile]:
    return [f for f in files if f.due_timestamp is not None and f.due_timestamp <= until_ms]


def _by(found: Unread) -> str:
    parts = []
    if found.groups:
        groups = [f"{group} ({count:,})" for group, count in found.groups.items()]
        parts.append(f"unread by {_named(groups)}")
    named = _named(found.unknown)
    unknown = found.readers.unknown_note(named, others_unread=bool(found.groups))
    if unknown:
        parts.append(unknown)
    if parts:
        return ": " + "; ".join(parts)
    return "; every group with progress has read them" if found.has_groups else ""


def _named(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _lie(count: int) -> str:
    return "lies" if count == 1 else "lie"
