"""Where the readable part of a store ends: the question that every reader asks first.

Files have their full length from creation, so their size says nothing. Two sources answer:

* ``storage.coordination.shared_state.SharedStateBounds``: the shared page of a store that rmqctl
  processes write;
* ``storage.read.scan_bounds.ScanBounds``: any other store (a foreign one, a copy, a
  read-only mount, one whose Java broker runs or died): the end is found as RocketMQ's recovery
  would find it.
"""

from __future__ import annotations

from typing import Protocol


class Bounds(Protocol):
    """Ends of the log and of the queues. No method takes a lock of the store or writes anything.

    Values grow while writers append. A reader that asks for a queue's end first, and for the log's
    end after it, sees every unit's record whole.
    """

    def log_end(self) -> int:
        """Commit log offset behind the last whole record."""
        ...

    def finished_to(self) -> int:
        """Where the log will end when somebody opens it for writing: behind its end if a dead
        writer has stored all records of a batch, and has not told of them."""
        ...

    def keys_from(self) -> int:
        """The index files have all keys of records below this log offset; the keys of later ones
        are still to be put there, and are found in the log (``pending_keys``). Asked for before
        the index files are looked at."""
        ...

    def index_is_whole(self) -> bool:
        """Whether the index files have these keys for sure: not after a power loss, until a writer
        has recovered the store."""
        ...

    def next_offset(self, topic: str, queue_id: int) -> int:
        """Max offset of a queue (exclusive); 0 for a queue that has no message or is unknown."""
        ...

    def queues(self) -> list[tuple[str, int]]:
        """All queues (topic, queue id) that ever got a message, in no particular order."""
        ...

    def files_generation(self) -> int:
        """A number that changes when files were deleted, so that readers drop what they keep."""
        ...

    def close(self) -> None:
        """Let go of what the bounds hold."""
        ...
