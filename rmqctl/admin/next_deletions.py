"""The log files that are deleted next, when, and which messages and groups that concerns."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from broker.members.living import members_by_group
from storage.configs.consumer_offsets import split_topic_at_group
from storage.format.message import RETRY_GROUP_TOPIC_PREFIX, retry_topic
from storage.read.log_offsets import first_at
from storage.retention import LogFile, RetentionRules, due_now, log_files, rules_by_hand, rules_of

if TYPE_CHECKING:
    from storage.readonly import StoreView

Progress = Mapping[tuple[str, str], Mapping[int, int]]
"""(group, topic) to queue id to committed offset."""


class WhyNone(StrEnum):
    """Why no run will find files to delete."""

    NEWEST = "the log has only its newest file"
    """Which is never deleted."""
    HOURS = "deleteWhen names no hour"
    AGE = "no log file gets as old as fileReservedTime"


class NextClean(NamedTuple):
    """The next deletion: the log up to ``before``, at ``at`` (ms); ``at`` is None if there is none,
    as ``why_none`` says."""

    at: int | None
    before: int
    files: list[LogFile]
    staying: list[LogFile]
    why_none: WhyNone | None = None


def next_clean(view: "StoreView", now_ms: int) -> NextClean:
    """The next run that finds files to delete, in the hours of deleteWhen."""
    found = _until_first(_files(view, rules_of(view.root, view.config), now_ms))
    return found if found.at is not None else found._replace(why_none=_why_none(view, now_ms))


def _why_none(view: "StoreView", now_ms: int) -> WhyNone:
    if _is_ever_due(_files(view, rules_by_hand(view.config), now_ms)):
        return WhyNone.HOURS
    if _is_ever_due(_files(view, rules_by_hand(view.config, 0), now_ms)):
        return WhyNone.AGE
    return WhyNone.NEWEST


def _is_ever_due(files: list[LogFile]) -> bool:
    return any(file.due_timestamp is not None for file in files)


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


def within(view: "StoreView", first: int, until: int) -> Iterator[tuple[str, int, int, int]]:
    """Topic, queue id and offsets of the messages between two log positions."""
    for topic, queue_id in view.queues():
        low, high = view.queue_bounds(topic, queue_id)
        begin = first_at(view, topic, queue_id, first, low, high)
        end = first_at(view, topic, queue_id, until, begin, high)
        if begin < end:
            yield topic, queue_id, begin, end


class NotRead(NamedTuple):
    """The groups that have not read some messages, and those of which that is unknown; sorted."""

    unread: list[str]
    unknown: list[str]


class ReadersProgress:
    """How far groups have read the topics of a store, and of which groups that is unknown.

    ``progress`` is read before the bounds of queues are. Groups without progress are known by their
    live members, and by their retry topics, which are read from the start.
    """

    def __init__(self, view: "StoreView", progress: Progress) -> None:
        self._view = view
        self.doubt = view.progress_doubt()
        """Why committed offsets may not be the last ones of groups; None without a reason."""
        self._topics: dict[str, dict[str, Mapping[int, int]]] = {}
        for (group, topic), offsets in progress.items():
            self._topics.setdefault(topic, {})[group] = offsets
        for group, members in members_by_group(view.root).items():
            for member in members:
                for item in member.consumer.subscriptions:
                    self._topics.setdefault(item.topic, {}).setdefault(group, {})

    def of_topic(self, topic: str) -> Mapping[str, Mapping[int, int]]:
        """The groups that read a topic, and the committed offset of each of its queues."""
        groups = self._topics.get(topic, {})
        own = topic.removeprefix(RETRY_GROUP_TOPIC_PREFIX)
        return groups if own == topic or own in groups else {**groups, own: {}}

    def topics_of(self, group: str) -> list[str]:
        """The topics that a group is known to read, sorted."""
        return sorted(topic for topic, groups in self._topics.items() if group in groups)

    def not_read(self, topics: Mapping[str, Mapping[int, int]]) -> NotRead:
        """The groups that have not read queues of some topics up to an offset.

        ``topics`` has that offset by queue id, of queues with messages before it. Unknown is a
        group without progress in one of the queues, or beyond its end; and each one that has read
        all by progress that is in doubt.
        """
        unread: set[str] = set()
        unknown: set[str] = set()
        for topic, ends in topics.items():
            for group, offsets in self.of_topic(topic).items():
                has_unread, is_unknown = self._judge(group, topic, offsets, ends)
                if has_unread:
                    unread.add(group)
                if is_unknown:
                    unknown.add(group)
        return NotRead(sorted(unread), sorted(unknown))

    def _judge(
        self, group: str, topic: str, offsets: Mapping[int, int], ends: Mapping[int, int]
    ) -> tuple[bool, bool]:
        """Whether a group has not read a queue up to its end, and whether that is unknown."""
        has_unread = is_unknown = False
        for queue_id, end in ends.items():
            offset = offsets.get(queue_id)
            if offset is None or offset < 0:
                if topic == retry_topic(group):
                    has_unread = True
                else:
                    is_unknown = True
            elif offset < end:
                has_unread = True
            elif offset > end and offset > self._view.queue_bounds(topic, queue_id)[1]:
                is_unknown = True
        in_doubt = self.doubt is not None and bool(ends) and not has_unread
        return has_unread, is_unknown or in_doubt

    def unknown_note(self, unknown: str, *, others_unread: bool) -> str:
        """What is said of groups of which it is unknown; "" without any, and without a doubt.

        ``others_unread``: groups are named that have not read all.
        """
        if self.doubt is not None:
            rest = "other groups" if others_unread else "all groups"
            return f"unknown for {unknown or rest}: {self.doubt}"
        if not unknown:
            return ""
        return f"unknown for {unknown}, without progress in some queue or beyond its end"


def readers_of(view: "StoreView") -> ReadersProgress:
    """The readers of a store by its progress as of now. Raises CorruptFileError."""
    progress = {}
    for key, offsets in view.consumer_offsets().items():
        parts = split_topic_at_group(key)
        if parts is not None and offsets:
            progress[parts[1], parts[0]] = offsets
    return ReadersProgress(view, progress)
