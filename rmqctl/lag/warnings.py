"""Warnings about unknown values of the groups that a command shows."""

from typing import TYPE_CHECKING

from rmqctl.admin.lag.unknown import unknown_sentences

if TYPE_CHECKING:
    from analytics.lag.lag_snapshot import LagSnapshot
    from rmqctl.cli.context import Cli

_TOLD = 5
"""Number of groups and topics that are named."""


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
