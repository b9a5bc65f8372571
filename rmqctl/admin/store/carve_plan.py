"""The plan of a carved store: queues and ranges, settings, groups, progress."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.admin.known_topics import INNER_TOPICS, check_topic_exists
from rmqctl.errors import NotFound, Refused
from storage.configs.consumer_offsets import OffsetTable, split_topic_at_group
from storage.configs.subscription_groups import SubscriptionGroupConfig, subscription_groups_file
from storage.configs.topics import TopicConfig, queues_with
from storage.format.message import LMQ_PREFIX, dlq_topic, retry_topic
from storage.read.log_cut import LogCut
from storage.readonly import Boundary
from storage.tools.carve.lost_units import LostUnits, unreached
from storage.tools.carve.ranges import QueueRange

if TYPE_CHECKING:
    from rmqctl.admin.message_filter import MessageFilter
    from storage.readonly import StoreView


class CarvePlan(NamedTuple):
    """The content of the new store. ``offsets`` are those of the old one."""

    ranges: list[QueueRange]
    topics: dict[str, TopicConfig]
    groups: dict[str, SubscriptionGroupConfig]
    offsets: OffsetTable


def plan_of(
    view: "StoreView", topics: Sequence[str], groups: Sequence[str], chosen: "MessageFilter"
) -> CarvePlan:
    """The plan for topics and groups, of one moment: an offset of the log limits all queues.

    Progress is read before that, so it never exceeds the copied messages.

    NotFound for unknown topics and groups; Refused for internal topics: messages that wait there
    would be delivered twice.
    """
    offsets = view.consumer_offsets()
    moment = LogCut(view)
    for topic in topics:
        check_topic_exists(view, topic)
        if topic in INNER_TOPICS:
            raise Refused(
                f"{topic} has messages that a broker still delivers; they would be delivered twice"
            )
        if topic.startswith(LMQ_PREFIX):
            raise Refused(f"{topic} is a light queue: its messages are in other topics, name those")
    settings = subscription_groups_file(view.root).read(0).items
    queues = view.queues()
    known = dict.fromkeys(topic for topic, _ in queues) | dict.fromkeys(view.topics())
    wanted = dict.fromkeys(topics)
    for group in groups:
        own = [name for name in (retry_topic(group), dlq_topic(group)) if name in known]
        read = [] if topics else [topic for topic in _topics_of(offsets, group) if topic in known]
        if not own and group not in settings and not _topics_of(offsets, group):
            raise NotFound(f"group {group} does not exist in {view.root}")
        wanted |= dict.fromkeys([*read, *own])
    chosen_offsets = _chosen_offsets(offsets, wanted, groups)
    names = {parts[1] for key in chosen_offsets if (parts := split_topic_at_group(key))}
    taken = [
        (topic, queue_id)
        for topic, queue_id in queues
        if topic in wanted and (chosen.queues is None or queue_id in chosen.queues)
    ]
    lost = unreached(view, taken, moment.log_end)
    ranges = [_range(view, moment, *key, chosen, lost.get(key, [])) for key in taken]
    return CarvePlan(
        ranges,
        {topic: _topic(view, topic, queues) for topic in wanted},
        {name: settings[name] for name in sorted({*names, *groups}) if name in settings},
        chosen_offsets,
    )


def _topics_of(offsets: OffsetTable, group: str) -> list[str]:
    """The topics in which a group has progress, without light ones."""
    pairs = map(split_topic_at_group, offsets)
    return sorted(
        parts[0]
        for parts in pairs
        if parts is not None and parts[1] == group and not parts[0].startswith(LMQ_PREFIX)
    )


def _chosen_offsets(
    offsets: OffsetTable, topics: "dict[str, None]", groups: Sequence[str]
) -> OffsetTable:
    """The progress of the named groups, or of all, in the copied topics."""
    chosen: OffsetTable = {}
    for key, queues in offsets.items():
        parts = split_topic_at_group(key)
        if parts is not None and parts[0] in topics and (not groups or parts[1] in groups):
            chosen[key] = queues
    return chosen


def _range(
    view: "StoreView",
    moment: LogCut,
    topic: str,
    queue_id: int,
    chosen: "MessageFilter",
    lost: Sequence[LostUnits],
) -> QueueRange:
    """The copied range of a queue, up to ``moment``; ``lost`` are unreachable messages at its end,
    which count as lost if they were selected."""
    low, high = moment.queue_bounds(topic, queue_id)
    begin, end = low, high
    if chosen.from_timestamp is not None:
        time = chosen.from_timestamp
        begin = view.offset_in_queue_by_time(topic, queue_id, time, Boundary.LOWER)
    if chosen.to_timestamp is not None:
        time = chosen.to_timestamp
        end = view.offset_in_queue_by_time(topic, queue_id, time, Boundary.LOWER)
    begin = min(max(begin, low), high)
    end = max(begin, min(end, high))
    missed = [message.queue_offset for message in lost if _is_wanted(message, chosen)]
    if missed:
        begin = min(begin, missed[0]) if begin < end else missed[0]
        end = max(end, missed[-1] + 1)
    low = min([low, *(message.queue_offset for message in lost[:1])])
    high = view.max_offset_in_queue(topic, queue_id)
    high = max([high, *(message.queue_offset + 1 for message in lost[-1:])])
    return QueueRange(topic, queue_id, begin, end, low, high)


def _is_wanted(message: LostUnits, chosen: "MessageFilter") -> bool:
    begin, end, time = chosen.from_timestamp, chosen.to_timestamp, message.store_timestamp
    return (begin is None or time >= begin) and (end is None or time < end)


def _topic(view: "StoreView", topic: str, queues: Sequence[tuple[str, int]]) -> TopicConfig:
    """The settings of a topic; without settings, as many queues as exist."""
    config = view.topics().get(topic)
    if config is None:
        count = queues_with(queue_id for name, queue_id in queues if name == topic)
        config = TopicConfig(topic, count, count)
    return config
