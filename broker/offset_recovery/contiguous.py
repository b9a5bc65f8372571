"""What a group has finished in a queue, and the progress that follows from it.

A consumer commits the smallest offset that it has not finished. So a message that was given back,
or consumed according to its trace, says nothing of the messages before it. One of them may still be
in a listener, and then the progress stays there, however far the others are. (The span that clients
keep to does not help: it is measured over the messages in memory, so all others may pass one
message that takes long.) These conclusions are valid:

  known = an offset that the progress has reached, else the first one of the queue
  bound = the first offset from there on that the group is not known to have finished

A message counts as finished only

* if the group gave a message of this queue back, or consumed one by its trace, at least
  ``settle_ms`` later: a client commits what it has finished every 5 s, and with its pulls;
* if no earlier message came to the group again since: then it restarted there, at the committed
  offset, and has to finish the later ones once more.

So the bound holds as long as no client dies within 5 s again and again without a commit. Even then
nothing is lost: each message before the bound was consumed, or waits as a retry or dead letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

SETTLE_MS: Final = 30_000
"""Twice the time that a new client takes to its first regular commit, and more."""

Place = tuple[str, str, int]
"""Group, topic, queue id."""


class ConsumedOffsets(NamedTuple):
    """A group has received or finished a message."""

    place: Place
    offset: int
    at: int
    """When that was stored (ms)."""
    order: int
    """Commit log offset of the message that shows it."""
    evidence: str
    """Id of that message."""
    source: str
    done: bool = True
    """False if it is only known that the message came to the group."""
    again: bool = False
    """Whether it surely came once more; otherwise a second record about the same message shows
    it."""
    alive: bool = True
    """Whether a consumer of the queue has reported it, not a tool that redrives retries."""


class ReachedOffset(NamedTuple):
    """The offset that the progress has reached, and the message that shows it; ``at`` its time."""

    offset: int
    last: ConsumedOffsets


class ContiguousOffsets:
    """What groups have finished. Takes events in the order of the log."""

    def __init__(self, events: Iterable[ConsumedOffsets], since: dict[Place, int]) -> None:
        """Add events; of some queues only those that were stored after a time (ms)."""
        self._done: dict[Place, dict[int, ConsumedOffsets]] = {}
        self._came: dict[Place, set[int]] = {}
        self._last: dict[Place, ConsumedOffsets] = {}
        self._handed: dict[Place, ConsumedOffsets] = {}
        for event in sorted(events, key=lambda event: event.order):
            if event.at > since.get(event.place, -1):
                self._take(event)

    def places(self) -> list[Place]:
        """All queues of which a group has received a message."""
        return list(self._handed)

    def handed(self, place: Place) -> ConsumedOffsets | None:
        """The furthest message that a group has surely received; it may not have finished it."""
        return self._handed.get(place)

    def reached(self, place: Place, known: int, settle_ms: int = SETTLE_MS) -> ReachedOffset | None:
        """Advance from an offset over finished messages; None if there is none."""
        done = self._done.get(place, {})
        alive = self._last.get(place)
        if alive is None:
            return None
        offset, last = known, None
        while (event := done.get(offset)) is not None and event.at + settle_ms <= alive.at:
            offset, last = offset + 1, event
        return None if last is None else ReachedOffset(offset, last)

    def _take(self, event: ConsumedOffsets) -> None:
        place, offset = event.place, event.offset
        done = self._done.setdefault(place, {})
        came = self._came.setdefault(place, set())
        reported = offset in done if event.done else offset in came
        if event.again or reported:
            for later in [known for known in done if known >= offset]:
                del done[later]
            came.difference_update([known for known in came if known > offset])
        if event.done:
            done[offset] = event
        else:
            came.add(offset)
        if event.alive:
            self._last[place] = event
        furthest = self._handed.get(place)
        if furthest is None or furthest.offset <= offset:
            self._handed[place] = event
