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
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from client.errors import ClientConfigError
from storage.format.message import MessageQueue


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

        Both sequences are sorted. Raises ValueError if one is empty, or the id is.
        """
        ...


def may_allocate(client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> bool:
    """Do the checks of all strategies; False if the client is no member (yet).

    That is so right after a start, until the heartbeat has arrived: then all queues are given up.
    """
    if not client_id:
        raise ValueError("currentCID is empty")
    if not queues:
        raise ValueError("mqAll is null or mqAll empty")
    if not client_ids:
        raise ValueError("cidAll is null or cidAll empty")
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
        from .machine_room import AllocateByMachineRoom

        return AllocateByMachineRoom(frozenset(rooms.split(",")))
    prefix, _, inner = name.partition("-")
    if prefix == "MACHINE_ROOM_NEARBY" and inner in _STRATEGIES:
        from .machine_room import AllocateMachineRoomNearby

        return AllocateMachineRoomNearby(_STRATEGIES[inner]())
    raise ClientConfigError(
        f"there is no allocation strategy {name!r}; by name there are {', '.join(_STRATEGIES)}, "
        "MACHINE_ROOM:<rooms> and MACHINE_ROOM_NEARBY-<strategy>"
    )


def _consistent_hash() -> AllocateMessageQueueStrategy:
    from .consistent_hash import AllocateConsistentHash

    return AllocateConsistentHash()


_STRATEGIES: Final[dict[str, Callable[[], AllocateMessageQueueStrategy]]] = {
    "AVG": AllocateAveragely,
    "AVG_BY_CIRCLE": AllocateAveragelyByCircle,
    "CONSISTENT_HASH": _consistent_hash,
}
