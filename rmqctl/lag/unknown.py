"""Telling what is not known of the groups that a command shows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from analytics.lag.unknown import unknown_ages, unknown_parts

if TYPE_CHECKING:
    from analytics.lag.lag_snapshot import LagSnapshot
    from rmqctl.cli.context import Cli

_TOLD = 5
"""Groups and topics of which it is told."""


class Unknown(NamedTuple):
    """Why something about a group in a topic is not known: of all, and of ages alone."""

    lag: Sequence[str] = ()
    age: Sequence[str] = ()


UnknownParts = Mapping[tuple[str, str], Unknown]
"""By group and topic."""


def unknown_of(seen: "LagSnapshot") -> UnknownParts:
    """What is not known, by group and topic, and why."""
    return {
        (group_lag.group, group_lag.topic): Unknown(
            unknown_parts(group_lag.queues), unknown_ages(group_lag.queues)
        )
        for group_lag in seen.group_lags
    }


def tell_unknown(cli: "Cli", seen: "LagSnapshot") -> None:
    """Warn of what is in no sum, and why, and of progress that can not be relied on."""
    if seen.doubt is not None:
        cli.warn(seen.doubt)
    sentences = unknown_sentences(seen)
    for sentence in sentences[:_TOLD]:
        cli.warn(sentence)
    if len(sentences) > _TOLD:
        more = len(sentences) - _TOLD
        cli.warn(f"{more} more groups and topics are known in part; --by queue shows which")


def unknown_sentences(seen: "LagSnapshot") -> list[str]:
    """A sentence for each group and topic of which not all is known."""
    return [
        f"group {group} in {topic}: {', '.join(parts.lag)}; that is in no sum"
        for (group, topic), parts in unknown_of(seen).items()
        if parts.lag
    ]
