"""Messages that wait in the delay topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from analytics.lag.delayed import doubt_of_level, levels, targets_in_doubt, waiting

from .row_types import DelayedRow

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .wanted import Wanted


def delayed_rows(broker: EmbeddedBroker, name: str, wanted: Wanted) -> Iterator[DelayedRow]:
    """Those that will be delivered, by level; ``topics`` are their targets. Delivery passes over
    messages that cannot be read, and so does this. ``wanted.unknown`` gets a sentence for each
    level whose saved offset lies beyond its end, and that has messages for the topics."""
    view = broker.view
    for level_id, targets in targets_in_doubt(view).items():
        if any(map(wanted.takes_topic, targets)):
            wanted.unknown(f"{view.root}: {doubt_of_level(level_id)}")
    for level in levels(view):
        for one in waiting(view, level):
            if wanted.takes_topic(one.topic):
                yield DelayedRow(name, *one.as_row())
