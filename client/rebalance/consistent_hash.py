"""CONSISTENT_HASH: when a member comes or goes, few queues move.

ConsistentHashRouter and AllocateMessageQueueConsistentHash of 4.9. Each client has ten places on a
ring of 2^32: the hashes of ``clientId-0`` to ``clientId-9``. A queue belongs to the first place at
or after the hash of its text, to the ring's first one if there is none.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final

from storage.format.message import MessageQueue

from .allocate import MembersShare

VIRTUAL_NODES: Final = 10
"""Places of each client."""


def md5_hash(key: str) -> int:
    """Hash a key: the first four bytes of its MD5, big endian."""
    digest = hashlib.md5(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


class AllocateConsistentHash(MembersShare):
    """Divides by a ring; see the module. All members need the same number of places."""

    name: Final = "CONSISTENT_HASH"

    def __init__(
        self,
        virtual_node_cnt: int = VIRTUAL_NODES,
        hash_function: Callable[[str], int] = md5_hash,
    ) -> None:
        if virtual_node_cnt < 0:
            raise ValueError(f"illegal virtualNodeCnt: {virtual_node_cnt}")
        self._virtual_node_cnt = virtual_node_cnt
        self._hash = hash_function

    def share(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See MembersShare.share; none on a ring without places."""
        ring = {
            self._hash(f"{owner}-{i}"): owner
            for owner in client_ids
            for i in range(self._virtual_node_cnt)
        }
        if not ring:
            return []
        places = sorted(ring)
        return [queue for queue in queues if ring[self._place(places, queue)] == client_id]

    def _place(self, places: Sequence[int], queue: MessageQueue) -> int:
        topic, broker_name, queue_id = queue
        text = f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId={queue_id}]"
        at = bisect_left(places, self._hash(text))
        return places[at] if at < len(places) else places[0]
