"""The log files that are deleted next, when, and their messages."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from storage.retention import LogFile, RetentionRules, due_now, log_files, rules_by_hand, rules_of

if TYPE_CHECKING:
    from storage.readonly import StoreView

Progress = Mapping[tuple[str, str], Mapping[int, int]]
"""(group, topic) to queue id to committed offset."""


class NextClean(NamedTuple):
    """The next deletion: the log up to ``before``, at ``at`` (ms).

    ``at`` is None if only the newest file exists, which is never deleted.
    """

    at: int | None
    before: int
    files: list[LogFile]
    staying: list[LogFile]


def next_clean(view: "StoreView", now_ms: int) -> NextClean:
    """The next run that finds files to delete, in the hours of deleteWhen."""
    return _until_first(_files(view, rules_of(view.root, view.config), now_ms))


def expired(view: "StoreView", now_ms: int, reserved_ms: int | None = None) -> list[LogFile]:
    """The files that are old enough now, at any hour, without regard to disk usage.

    In order from the oldest: the first one that is too young keeps all later ones. The age is
    ``reserved_ms``, else fileReservedTime.
    """
    return due_now(_files(view, rules_by_hand(view.config, reserved_ms), now_ms), now_ms)


def _files(view: "StoreView", rules: RetentionRules, now_ms: int) -> list[LogFile]:
    return log_files(view.root, view.config, rules, view.log_max_offset(), now_ms)


def _until_first(files: list[LogFile]) -> NextClean:
    first = next((file.due_timestamp for file in files if file.due_timestamp is not None), None)
    if first is None:
        return NextClean(None, files[0].first if files else 0, [], files)
    going = [f for f in files if f.due_timestamp is not None and f.due_timestamp <= first]
    staying = files[len(going) :]
    before = staying[0].first if staying else 0
    return NextClean(first, before, going, staying)


def first_at(view: "StoreView", topic: str, queue_id: int, place: int) -> int:
    """The first queue offset whose record is at or after a log position, by bisection."""
    low, high = view.queue_bounds(topic, queue_id)
    while low < high:
        middle = (low + high) // 2
        unit = view.unit(topic, queue_id, middle)
        if unit is not None and unit[0] >= place:
            high = middle
        else:
            low = middle + 1
    return low


def within(view: "StoreView", first: int, until: int) -> Iterator[tuple[str, int, int, int]]:
    """Topic, queue id and offsets of the messages between two log positions."""
    for topic, queue_id in view.queues():
        begin = first_at(view, topic, queue_id, first)
        end = first_at(view, topic, queue_id, until)
        if begin < end:
            yield topic, queue_id, begin, end


def unread_by(progress: Progress, topic: str, ends: Mapping[int, int]) -> list[str]:
    """Groups with progress in a topic that have not read a queue up to an offset.

    A queue in which such a group has no progress is unknown, and not counted.
    """
    return sorted(
        group
        for (group, name), offsets in progress.items()
        if name == topic
        and any(offsets[queue] < end for queue, end in ends.items() if queue in offsets)
    )
