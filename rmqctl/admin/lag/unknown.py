"""Unknown values of the groups of a lag snapshot, and why."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from analytics.lag.unknown import unknown_ages, unknown_parts, unknown_risks

if TYPE_CHECKING:
    from analytics.lag.counts import GroupCounts
    from analytics.lag.lag_snapshot import GroupLag, LagSnapshot


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
