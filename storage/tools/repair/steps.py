"""Steps of a repair, as values: only what a step describes is written."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from storage.format.tombstone import Tombstone


class Action(StrEnum):
    """What a step does. Bytes that it removes or overwrites go to the quarantine first."""

    BRING_BACK = "BRING_BACK"
    """A file from the quarantine is moved to the place that its records name."""
    QUARANTINE = "QUARANTINE"
    """A file that does not belong to the store goes to the quarantine."""
    SET_LENGTH = "SET_LENGTH"
    """A file gets the length of the store's files: cut, or lengthened by zeros."""
    MAKE_FILE = "MAKE_FILE"
    """A missing log file is made: records that keep the ends of queues, if one ended in it, and a
    blank record that every reader passes."""
    MEND = "MEND"
    """Fields of a record's head are written from its unit and its place; its body is whole."""
    REPLACE = "REPLACE"
    """A record of the same length, topic, queue and offset, with a body of zeros."""
    FILL = "FILL"
    """Bytes of unknown content become a record without a queue."""
    BLANK = "BLANK"
    """The blank record that ends a log file is written."""
    CLEAR = "CLEAR"
    """Left-over bytes become zeros."""
    REBUILD_QUEUE = "REBUILD_QUEUE"
    """A consume queue is rebuilt from the log."""
    REBUILD_INDEX = "REBUILD_INDEX"
    """The key index is rebuilt from the log."""
    RESTORE = "RESTORE"
    """A file of settings gets the content of its .bak."""
    RECOVER = "RECOVER"
    """Progress of groups is rebuilt from all evidence (store recover-offsets)."""
    CHECKPOINT = "CHECKPOINT"
    """The checkpoint is written anew."""
    NONE = "NONE"
    """Repair cannot fix it; ``what`` names the remedy."""


class Step(NamedTuple):
    """One step. ``file`` is relative to the store, ``position`` a byte in it (None: the whole
    file), ``length`` the bytes that are written or removed.

    ``why`` is the finding's code; ``cost`` names messages that stay unreadable, "" for none,
    ``lost`` how many (None: unknown). ``old_crc`` is that of the bytes in the plan, None where
    there are none. Written are ``records`` in sequence, then ``data``; ``source`` is what
    BRING_BACK takes: a path in an earlier quarantine, or that of a file which this plan puts there.
    """

    action: Action
    file: str
    position: int | None
    length: int | None
    why: str
    what: str
    cost: str = ""
    lost: int | None = 0
    old_crc: int | None = None
    records: tuple[Tombstone, ...] = ()
    data: bytes = b""
    source: str = ""


class Plan(NamedTuple):
    """All steps, in the order in which they are carried out."""

    steps: list[Step]
    log_end: int
    """Commit log offset of the end of the log when the plan was made."""

    @property
    def executable(self) -> list[Step]:
        """The steps that change something."""
        return [step for step in self.steps if step.action is not Action.NONE]
