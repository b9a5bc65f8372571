"""What a reader of rows of stores asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from analytics.report.stores import as_text


class Wanted(NamedTuple):
    """The rows that are asked for. Others may be given, too, where they cost nothing."""

    groups: Collection[str] | None = None
    """None: all."""
    topics: Collection[str] | None = None
    damaged: Callable[[str], None] = lambda _: None
    """Gets a sentence for each message that cannot be read and is left out; may raise."""
    unknown: Callable[[str], None] = lambda _: None
    """Gets a sentence where it is unknown which rows there are."""
    bodies: bool = True
    """Whether bodies are asked for; without it they are None."""

    def takes_group(self, group: str | None) -> bool:
        """Whether rows of a group are asked for."""
        return _takes(self.groups, group)

    def takes_topic(self, topic: str | None) -> bool:
        """Whether rows of a topic are asked for."""
        return _takes(self.topics, topic)


def _takes(names: Collection[str] | None, name: str | None) -> bool:
    """Whether a name is among some, as it is or as rows show it."""
    return names is None or name in names or (name is not None and as_text(name) in names)
