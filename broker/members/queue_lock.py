"""Locks for consuming a queue in order (RebalanceLockManager of 4.9).

Each lock is a byte of ``<store>/rmqctl/locks/<group>`` that the kernel locks for the process of the
member: a dead process holds nothing, and no time has to pass. Queues of one topic lie side by side,
because the kernel merges neighbouring bytes of one holder.

Within a process a table maps a lock to its client. A remote client (through a socket) loses its
locks after 60 s without a refresh, as in RocketMQ.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from broker.validation import check_group
from storage.coordination.locks import LockFile
from storage.errors import StoreNotWritableError
from storage.files.creating import make_folders
from storage.format.message import MessageQueue
from storage.format.names import OURS

LOCKS_FOLDER: Final = "locks"
REBALANCE_LOCK_MAX_LIVE_TIME_MS: Final = 60_000
"""How long a lock lasts without a refresh if nothing else shows that its client lives."""
_QUEUE_ID_BITS: Final = 31
_TOPIC_BITS: Final = 31
_LONGEST_NAME: Final = 200


class LockEntry(NamedTuple):
    """The holder of a queue, and its last refresh (ms); ``remote`` clients must keep refreshing."""

    client_id: str
    last_update: int
    remote: bool

    def expired(self, now: int) -> bool:
        """Return whether another client may take the queue."""
        return self.remote and now - self.last_update > REBALANCE_LOCK_MAX_LIVE_TIME_MS


class QueueLocks:
    """The queue locks of this process. Safe for threads; never blocks."""

    def __init__(self, root: Path, now: Callable[[], int]) -> None:
        self._folder = root / OURS / LOCKS_FOLDER
        self._now = now
        self._lock = threading.Lock()  # guards the two fields below
        self._files: dict[str, LockFile] = {}
        self._held: dict[str, dict[MessageQueue, LockEntry]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], *, remote: bool
    ) -> set[MessageQueue]:
        """Lock queues for a client, or refresh its locks; gives those that it holds now.

        Raises InvalidNameError and StoreNotWritableError.
        """
        now = self._now()
        entry = LockEntry(client_id, now, remote)
        with self._lock:
            file = self._file(group)
            held = self._held.setdefault(group, {})
            gotten = set()
            for queue in queues:
                known = held.get(queue)
                if known is None:
                    if not file.try_lock(_byte(queue)):
                        continue
                elif known.client_id != client_id and not known.expired(now):
                    continue
                held[queue] = entry
                gotten.add(queue)
            return gotten

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> bool:
        """Release queues that the client holds; returns whether there were any."""
        with self._lock:
            return {q for q in queues if self._release(group, client_id, q)} != set()

    def unlock_all(self, client_id: str, group: str | None = None) -> set[str]:
        """Release all queues of a client (in one group); gives the groups of those queues."""
        with self._lock:
            return {
                held_group
                for held_group, held in self._held.items()
                if group in (None, held_group)
                for queue in list(held)
                if self._release(held_group, client_id, queue)
            }

    def close(self) -> None:
        """Release all queues."""
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files = {}
            self._held = {}

    def _release(self, group: str, client_id: str, queue: MessageQueue) -> bool:
        held = self._held.get(group, {})
        known = held.get(queue)
        if known is None or known.client_id != client_id:
            return False
        self._files[group].unlock(_byte(queue))
        del held[queue]  # last: an interrupted release can be repeated
        return True

    def _file(self, group: str) -> LockFile:
        file = self._files.get(group)
        if file is None:
            check_group(group)
            path = self._folder / _file_name(group)
            try:
                make_folders(path.parent)
                file = self._files[group] = LockFile(path)
            except OSError as error:
                raise StoreNotWritableError(path, error.strerror or str(error)) from error
        return file


def _byte(queue: MessageQueue) -> int:
    """Give the queue's byte in the file of its group; 31 bits of a hash keep topics apart."""
    from hashlib import blake2b  # loads OpenSSL; a producer does not need it

    digest = blake2b(queue.topic.encode(), digest_size=8).digest()
    topic = int.from_bytes(digest, "big") >> (64 - _TOPIC_BITS)
    return (topic << _QUEUE_ID_BITS) + queue.queue_id


def _file_name(group: str) -> str:
    """Name a group's file; a group's name may be longer than a file's."""
    if len(group) <= _LONGEST_NAME:
        return group
    return f"{group[:_LONGEST_NAME]}-{zlib.crc32(group.encode()):08x}"
