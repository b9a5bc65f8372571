"""Strategies that divide queues among members (AllocateMessageQueueStrategy of 4.9). Pure.

Members do not talk to each other: all give a strategy the same sorted queues and the same ids,
sorted by UTF-16 unit, and each takes its own part of the answer. With different strategies in one
group, queues are consumed twice or not at all.

    name                         8 queues, 3 clients
    AVG (allocate_averagely)     0 1 2, 3 4 5, 6 7          like pages
    AVG_BY_CIRCLE                0 3 6, 1 4 7, 2 5          like cards
    CONSISTENT_HASH              few queues move when a member comes or goes
    MACHINE_ROOM                 queues of brokers named idc@name, of some idcs only
    MACHINE_ROOM_NEARBY-x        queues go to clients in their own room, by strategy x
    CONFIG                       a fixed list
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

from client.errors import ClientConfigError
from storage.format.message import MessageQueue

VIRTUAL_NODES: Final = 10
"""Points of each client."""
ROOM_SEPARATOR: Final = "@"


class AllocateMessageQueueStrategy(Protocol):
    """Divides the queues of a topic among the members of a group."""

    @property
    def name(self) -> str:
        """RocketMQ's name of it."""
        ...

    def allocate(
        self,
        group: str,
        client_id: str,
        queues: Sequence[MessageQueue],
        client_ids: Sequence[str],
    ) -> list[MessageQueue]:
        """Give the queues of ``client_id``; none if it is not among ``client_ids``.

        Both sequences are sorted. An answer of None means no queue. Raises ValueError if one is
        empty, or the id is.
        """
        ...


def may_allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> bool:
    """Do the checks of all strategies; False if the client is no member (yet).

    That is so right after a start, until the heartbeat has arrived: then all queues are given up.
    """
    if not client_id:
        raise ValueError("the client id is empty; a strategy needs that of the member")
    if not queues:
        raise ValueError("there are no queues to divide; pass those of the topic")
    if not client_ids:
        raise ValueError("there are no client ids to divide queues among; pass the members' ids")
    return client_id in client_ids


class MembersShare(ABC):
    """A strategy that checks its arguments: only members get queues."""

    def allocate(
        self,
        group: str,
        client_id: str,
        queues: Sequence[MessageQueue],
        client_ids: Sequence[str],
    ) -> list[MessageQueue]:
        """See AllocateMessageQueueStrategy.allocate."""
        del group
        if not may_allocate(client_id, queues, client_ids):
            return []
        return self.share(client_id, queues, client_ids)

    @abstractmethod
    def share(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Give a member's queues; no argument is empty."""


class AllocateAveragely(MembersShare):
    """AVG: neighbouring queues, as evenly as it goes; the first clients get one more."""

    name: Final = "AVG"

    def share(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See MembersShare.share."""
        index, count = client_ids.index(client_id), len(client_ids)
        size, more = divmod(len(queues), count)
        start = index * size + min(index, more)
        return list(queues[start : start + size + (index < more)])


class AllocateAveragelyByCircle(MembersShare):
    """AVG_BY_CIRCLE: the queues are assigned one by one in turn."""

    name: Final = "AVG_BY_CIRCLE"

    def share(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See MembersShare.share."""
        return list(queues[client_ids.index(client_id) :: len(client_ids)])


class AllocateByConfig:
    """CONFIG: the configured queues, whatever other members the group has; nothing is checked."""

    name: Final = "CONFIG"

    def __init__(self, queues: Sequence[MessageQueue] = ()) -> None:
        self.queues = list(queues)

    def allocate(
        self,
        group: str,
        client_id: str,
        queues: Sequence[MessageQueue],
        client_ids: Sequence[str],
    ) -> list[MessageQueue]:
        """See AllocateMessageQueueStrategy.allocate."""
        return list(self.queues)


def md5_hash(key: str) -> int:
    """Hash a key: the first four bytes of its MD5, big endian."""
    import hashlib

    digest = hashlib.md5(key.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


class AllocateConsistentHash(MembersShare):
    """CONSISTENT_HASH: when a member comes or goes, few queues move.

    ConsistentHashRouter and AllocateMessageQueueConsistentHash of 4.9. Each client has ten points
    on a ring of 2^32: the hashes of ``clientId-0`` to ``clientId-9``. A queue belongs to the first
    point at or after the hash of its text, to the ring's first one if there is none. All members
    need the same number of points.
    """

    name: Final = "CONSISTENT_HASH"

    def __init__(
        self,
        virtual_node_cnt: int = VIRTUAL_NODES,
        hash_function: Callable[[str], int] = md5_hash,
    ) -> None:
        if virtual_node_cnt < 0:
            raise ValueError(f"virtual_node_cnt is {virtual_node_cnt}; it is 0 or more")
        self._virtual_node_cnt = virtual_node_cnt
        self._hash = hash_function

    def share(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See MembersShare.share; none on a ring without points."""
        ring = {
            self._hash(f"{owner}-{i}"): owner
            for owner in client_ids
            for i in range(self._virtual_node_cnt)
        }
        if not ring:
            return []
        points = sorted(ring)
        return [queue for queue in queues if ring[self._point(points, queue)] == client_id]

    def _point(self, points: Sequence[int], queue: MessageQueue) -> int:
        topic, broker_name, queue_id = queue
        text = f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId={queue_id}]"
        at = bisect_left(points, self._hash(text))
        return points[at] if at < len(points) else points[0]


class AllocateByMachineRoom(MembersShare):
    """MACHINE_ROOM: queues of brokers named ``room@name``, of the given rooms only.

    Blocks of equal size first; the queues that are left go one each to the first clients.
    """

    name: Final = "MACHINE_ROOM"

    def __init__(self, consumer_idcs: Collection[str] = ()) -> None:
        self.consumer_idcs = frozenset(consumer_idcs)

    def share(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """See MembersShare.share."""
        ours = [queue for queue in queues if self._is_ours(queue)]
        index = client_ids.index(client_id)
        size, more = divmod(len(ours), len(client_ids))
        own = ours[index * size : index * size + size]
        if index < more:
            own.append(ours[size * len(client_ids) + index])
        return own

    def _is_ours(self, queue: MessageQueue) -> bool:
        parts = queue.broker_name.split(ROOM_SEPARATOR)
        return len(parts) == 2 and parts[0] in self.consumer_idcs


class MachineRoomResolver(Protocol):
    """Gives the rooms of brokers and clients."""

    def broker_deploy_in(self, queue: MessageQueue) -> str | None:
        """Give the room of a queue's broker."""
        ...

    def consumer_deploy_in(self, client_id: str) -> str | None:
        """Give the room of a client."""
        ...


class RoomByPrefix:
    """Rooms are the parts before ``@`` in names of brokers and in client ids."""

    def broker_deploy_in(self, queue: MessageQueue) -> str | None:
        """See MachineRoomResolver.broker_deploy_in."""
        return queue.broker_name.partition(ROOM_SEPARATOR)[0]

    def consumer_deploy_in(self, client_id: str) -> str | None:
        """See MachineRoomResolver.consumer_deploy_in."""
        return client_id.partition(ROOM_SEPARATOR)[0]


class AllocateMachineRoomNearby:
    """MACHINE_ROOM_NEARBY: a room's queues are divided among the clients in it.

    Queues of rooms without a client are divided among all clients, room by room. A room that the
    resolver does not know (None or empty) is a ValueError.
    """

    def __init__(
        self,
        strategy: AllocateMessageQueueStrategy,
        resolver: MachineRoomResolver | None = None,
    ) -> None:
        self._strategy = strategy
        self._resolver = resolver or RoomByPrefix()

    @property
    def name(self) -> str:
        """RocketMQ's name, with that of the strategy inside."""
        return f"MACHINE_ROOM_NEARBY-{self._strategy.name}"

    def allocate(
        self,
        group: str,
        client_id: str,
        queues: Sequence[MessageQueue],
        client_ids: Sequence[str],
    ) -> list[MessageQueue]:
        """See AllocateMessageQueueStrategy.allocate."""
        if not may_allocate(client_id, queues, client_ids):
            return []
        queues_in: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            room = self._resolver.broker_deploy_in(queue)
            queues_in.setdefault(_known(room, f"broker of {queue}"), []).append(queue)
        clients_in: dict[str, list[str]] = {}
        for member in client_ids:
            room = self._resolver.consumer_deploy_in(member)
            clients_in.setdefault(_known(room, f"client {member}"), []).append(member)
        own = _known(self._resolver.consumer_deploy_in(client_id), f"client {client_id}")
        share: list[MessageQueue] = []
        if own in queues_in:
            found = self._strategy.allocate(group, client_id, queues_in[own], clients_in[own])
            share += found or ()
        for room in sorted(queues_in):
            if room not in clients_in:
                found = self._strategy.allocate(group, client_id, queues_in[room], client_ids)
                share += found or ()
        return share


def _known(room: str | None, of_what: str) -> str:
    if not room:
        raise ValueError(f"the machine room of {of_what} is not known; the resolver gives one")
    return room


def allocate_strategy(name: str) -> AllocateMessageQueueStrategy:
    """Make a strategy by RocketMQ's name: one that needs only its name.

    ``MACHINE_ROOM:room1,room2`` names rooms; ``MACHINE_ROOM_NEARBY-AVG`` takes the part of broker
    names and client ids before ``@`` for their room. Raises ClientConfigError.
    """
    make = _STRATEGIES.get(name)
    if make is not None:
        return make()
    kind, _, rooms = name.partition(":")
    if kind == "MACHINE_ROOM" and rooms:
        return AllocateByMachineRoom(frozenset(rooms.split(",")))
    prefix, _, inner = name.partition("-")
    if prefix == "MACHINE_ROOM_NEARBY" and inner in _STRATEGIES:
        return AllocateMachineRoomNearby(_STRATEGIES[inner]())
    raise ClientConfigError(
        f"there is no allocation strategy {name!r}; by name there are {', '.join(_STRATEGIES)}, "
        "MACHINE_ROOM:<rooms> and MACHINE_ROOM_NEARBY-<strategy>"
    )


_STRATEGIES: Final[dict[str, Callable[[], AllocateMessageQueueStrategy]]] = {
    "AVG": AllocateAveragely,
    "AVG_BY_CIRCLE": AllocateAveragelyByCircle,
    "CONSISTENT_HASH": AllocateConsistentHash,
}
