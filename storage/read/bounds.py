"""Where the readable part of a store ends. Every reader needs this first.

Files have their full length from creation, so their size says nothing. There are two sources:

* ``storage.coordination.shared_state.SharedStateBounds``: the shared state of a store that rmqctl
  processes write;
* ``storage.read.scan_bounds.ScanBounds``: any other store (a foreign one, a copy, a
  read-only mount, one whose Java broker runs or died): the end is found as RocketMQ's recovery
  would find it.
"""

from __future__ import annotations

from typing import Protocol


class Bounds(Protocol):
    """Ends of the log and of the queues. No method takes a lock of the store or writes anything.

    Values grow while writers append. A reader that reads a queue's end first, and the log's end
    after it, sees every unit's record whole.
    """

    def log_end(self) -> int:
        """Commit log offset after the last whole record."""
        ...

    def finished_to(self) -> int:
        """The log's end after the next opening for writing: larger than its end if a dead writer
        has stored all records of a batch, and has not finished the batch."""
        ...

    def keys_from(self) -> int:
        """The index files have all keys of records below this log offset; the keys of later ones
        are still to be put there, and are found in the log (``pending_keys``). To be read before
        the index files."""
        ...

    def index_is_whole(self) -> bool:
        """Whether the index files surely have these keys: not after a power loss, until a writer
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
        """Release the resources of the bounds."""
        ...
