"""Strategies that use the machine rooms of brokers and clients.

AllocateMessageQueueByMachineRoom and AllocateMachineRoomNearby of 4.9.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Protocol

from storage.format.message import MessageQueue

from .allocate import AllocateMessageQueueStrategy, MembersShare, may_allocate

ROOM_SEPARATOR: Final = "@"


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
        share = []
        if own in queues_in:
            share = self._strategy.allocate(group, client_id, queues_in[own], clients_in[own])
        for room in sorted(queues_in):
            if room not in clients_in:
                share += self._strategy.allocate(group, client_id, queues_in[room], client_ids)
        return share


def _known(room: str | None, of_what: str) -> str:
    if not room:
        raise ValueError(f"machine room is null for the {of_what}")
    return room
