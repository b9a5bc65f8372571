"""Progress of a member with a limit: it never passes the limit.

The client commits the offset of the next pulled message, or the end of its last pull. Messages that
the broker's filter left out lie before that offset, but may lie past the last message to be
consumed: a later consumer, perhaps with another filter, still has to see them.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from client.push.push_consumer import PushConsumer

if TYPE_CHECKING:
    from broker.api.offsets import OffsetCommit
    from client.offset_store.offset_store import OffsetStore, ReadOffsetType
    from storage.format.message import MessageQueue

    from .quota import Quota


class LimitedConsumer(PushConsumer):
    """A push consumer whose progress is limited by ``quota``; set ``quota`` before start."""

    quota: "Quota"

    def _make_offset_store(self) -> "OffsetStore":
        return BoundedProgress(super()._make_offset_store(), self.quota)


class BoundedProgress:
    """An OffsetStore over another one that passes on no more than ``quota`` allows."""

    def __init__(self, store: "OffsetStore", quota: "Quota") -> None:
        self._store = store
        self._quota = quota

    def update_offset(self, queue: "MessageQueue", offset: int, increase_only: bool) -> None:
        """See OffsetStore."""
        bound = self._quota.bound(queue, offset)
        if bound is not None:
            self._store.update_offset(queue, bound, increase_only)

    def load(self) -> None:
        """See OffsetStore."""
        self._store.load()

    def read_offset(self, queue: "MessageQueue", read_type: "ReadOffsetType") -> int | None:
        """See OffsetStore."""
        return self._store.read_offset(queue, read_type)

    def persist_all(self, queues: "Collection[MessageQueue]") -> None:
        """See OffsetStore."""
        self._store.persist_all(queues)

    def persist(self, queue: "MessageQueue") -> None:
        """See OffsetStore."""
        self._store.persist(queue)

    def remove_offset(self, queue: "MessageQueue") -> None:
        """See OffsetStore."""
        self._store.remove_offset(queue)

    def clone_offset_table(self, topic: str | None = None) -> "dict[MessageQueue, int]":
        """See OffsetStore."""
        return self._store.clone_offset_table(topic)

    def pull_commit(self, queue: "MessageQueue") -> "OffsetCommit | None":
        """See OffsetStore."""
        return self._store.pull_commit(queue)
