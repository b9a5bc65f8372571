"""What a reader of rows of stores asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple


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
        return self.groups is None or group in self.groups

    def takes_topic(self, topic: str | None) -> bool:
        """Whether rows of a topic are asked for."""
        return self.topics is None or topic in self.topics
