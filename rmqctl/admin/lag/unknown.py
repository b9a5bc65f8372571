"""Unknown values of the groups of a lag snapshot, and why."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.lag.unknown import unknown_ages, unknown_parts, unknown_risks
from rmqctl.admin.offsets.queues import read_queues_without
from storage.counted import counted

if TYPE_CHECKING:
    from analytics.lag.counts import GroupCounts
    from analytics.lag.lag_snapshot import GroupLag, LagSnapshot
    from storage.configs.topics import TopicConfig


NO_PROGRESS: Final = "no group that was asked for has any progress: what is unread is unknown"


class Unknown(NamedTuple):
    """Reasons for unknown values of a group in a topic: of any value, of ages only, and of times of
    deletion only."""

    lag: Sequence[str] = ()
    age: Sequence[str] = ()
    risk: Sequence[str] = ()


UnknownParts = Mapping[tuple[str, str], Unknown]
"""By group and topic."""


def unknown_of(seen: "LagSnapshot") -> UnknownParts:
    """The reasons for unknown values, by group and topic."""
    return {
        (group_lag.group, group_lag.topic): Unknown(
            unknown_parts(group_lag.queues),
            unknown_ages(group_lag.queues),
            unknown_risks(group_lag.queues),
        )
        for group_lag in seen.group_lags
    }


def unknown_sentence(group_lag: "GroupLag | GroupCounts") -> str | None:
    """The sentence of a group in a topic; None if nothing is unknown."""
    parts = unknown_parts(group_lag.queues)
    if not parts:
        return None
    return (
        f"group {group_lag.group} in {group_lag.topic}: {', '.join(parts)}; not included in the "
        "sums"
    )


def unknown_sentences(seen: "LagSnapshot") -> list[str]:
    """A sentence for each group and topic that is partly unknown."""
    # Counts, where they are kept, make no rates; 'lag show' keeps none, so they are not imported.
    groups: Sequence[GroupLag | GroupCounts] = getattr(seen.group_lags, "counts", seen.group_lags)
    found = map(unknown_sentence, groups)
    return [sentence for sentence in found if sentence is not None]


def not_read_sentences(seen: "LagSnapshot", topics: "Mapping[str, TopicConfig]") -> Iterator[str]:
    """A sentence for each queue with unread messages that its topic's settings leave unread."""
    for one in seen.group_lags:
        config = topics.get(one.topic)
        if not one.queues or read_queues_without(config, one.queues[-1].queue_id) is None:
            continue  # mostly: they are by number
        for queue in one.queues:
            if queue.unread.lag and read_queues_without(config, queue.queue_id) is not None:
                yield (
                    f"group {one.group} in {one.topic}: queue {queue.queue_id} "
                    f"({counted(queue.unread.lag, 'message')} unread) is not read; 'rmqctl topic "
                    f"alter {quote(one.topic)} --read-queues {queue.queue_id + 1}' makes it read"
                )
