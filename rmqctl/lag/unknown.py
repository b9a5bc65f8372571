"""Warnings about unknown values of the groups that a command shows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from analytics.lag.unknown import unknown_ages, unknown_parts

if TYPE_CHECKING:
    from analytics.lag.lag_snapshot import LagSnapshot
    from rmqctl.cli.context import Cli

_TOLD = 5
"""Number of groups and topics that are named."""


class Unknown(NamedTuple):
    """Reasons for unknown values of a group in a topic: of any value, and of ages only."""

    lag: Sequence[str] = ()
    age: Sequence[str] = ()


UnknownParts = Mapping[tuple[str, str], Unknown]
"""By group and topic."""


def unknown_of(seen: "LagSnapshot") -> UnknownParts:
    """The reasons for unknown values, by group and topic."""
    return {
        (group_lag.group, group_lag.topic): Unknown(
            unknown_parts(group_lag.queues), unknown_ages(group_lag.queues)
        )
        for group_lag in seen.group_lags
    }


def tell_unknown(cli: "Cli", seen: "LagSnapshot") -> None:
    """Warn of queues that are not in the sums, with the reason, and of unreliable progress."""
    if seen.doubt is not None:
        cli.warn(seen.doubt)
    sentences = unknown_sentences(seen)
    for sentence in sentences[:_TOLD]:
        cli.warn(sentence)
    if len(sentences) > _TOLD:
        more = len(sentences) - _TOLD
        cli.warn(f"{more} more groups and topics are partly unknown; --by queue shows which")


def unknown_sentences(seen: "LagSnapshot") -> list[str]:
    """A sentence for each group and topic that is partly unknown."""
    return [
        f"group {group} in {topic}: {', '.join(parts.lag)}; not included in the sums"
        for (group, topic), parts in unknown_of(seen).items()
        if parts.lag
    ]
