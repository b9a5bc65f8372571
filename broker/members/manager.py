"""Members of groups: clients of any processes on one store (ConsumerManager, ProducerManager).

A client that is connected here is listed in this process's entry file, for all processes to read;
it lives as long as its process. So there is no table that could be wrong: a group's members are
read from the entries of live processes. What RocketMQ's broker sends its clients over their
connections goes as control messages (broker.members.notices), and each broker calls its own
clients.

Lock order: ``_joins`` > ``_lock`` > that of QueueLocks. Clients are called under none of them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.api.members import MessageModel
from broker.errors import (
    BrokerSystemError,
    ClientIdInUseError,
    SubscriptionGroupNotExistError,
)
from broker.tables.groups import CONSUMING_GROUP_MAX_LENGTH, check_consuming_group
from storage.coordination.forks import made_once
from storage.coordination.locks import ProcessLock
from storage.deadlines import MAX_CLOSE_S
from storage.format.message import retry_topic
from storage.format.names import OURS

from .group_table import GroupTable, group_table, is_expired
from .notices import CHECK, MEMBERS, RESET, TOPICS, Notices
from .process_info_json import consumer_json, groups_of, members_of
from .queue_lock import QueueLocks

if TYPE_CHECKING:
    from broker.api.members import ClientDescription, ClientHandler, ConsumerData, HeartbeatData
    from broker.errors import BrokerError
    from broker.tables.groups import GroupManager
    from broker.tables.topics import TopicManager
    from storage.coordination.processes import ControlMessage, ProcessInfo
    from storage.format.message import MessageExt, MessageQueue

    from .broker_to_client import ClientCalls

logger = logging.getLogger("rmqctl.broker")

JOINS_LOCK: Final = "joins.lock"
"""File that is locked while a client joins a group that divides its queues."""

ProgressOf = Callable[[str, str, int], int | None]
"""Group, topic, queue id: the offset that is committed."""


class _Client:
    """One connected client; ``consumers`` by group. Immutable: a new object takes its place when
    its groups change."""

    def __init__(self, client_id: str, handler: ClientHandler, now: int, *, remote: bool) -> None:
        self.client_id = client_id
        self.handler = handler
        self.remote = remote
        self.since = now
        self.last_heartbeat = now
        self.beat = 0
        self.producers: frozenset[str] = frozenset()
        self.consumers: Mapping[str, ConsumerData] = {}

    def within(self, producers: Iterable[str], consumers: Mapping[str, ConsumerData]) -> _Client:
        """Return this client with other groups."""
        other = copy(self)
        other.producers = frozenset(producers)
        other.consumers = consumers
        return other

    def json(self) -> dict[str, Any]:
        """Make its part of the process entry."""
        return {
            "id": self.client_id,
            "since": self.since,
            "last_heartbeat": self.last_heartbeat,
            "beat": self.beat,
            "producers": sorted(self.producers),
            "consumers": {group: consumer_json(data) for group, data in self.consumers.items()},
        }


class MemberManager:
    """The clients of this process and the groups of the whole store. Safe for threads."""

    def __init__(
        self,
        root: Path,
        topics: TopicManager,
        groups: GroupManager,
        *,
        now: Callable[[], int],
        progress_of: ProgressOf,
        adopt_progress: Callable[[list[str]], None] = lambda _: None,
        read_message: Callable[[int], MessageExt | None],
        refuse_equal_client_ids: bool = True,
        read_only: bool = False,
    ) -> None:
        """With ``read_only`` it has no clients, and only asks those of others."""
        self._topics = topics
        self._groups = groups
        self._now = now
        self._progress_of = progress_of
        self._adopt_progress = adopt_progress
        self._refuse_equal_client_ids = refuse_equal_client_ids
        self._joins = ProcessLock(root / OURS / JOINS_LOCK)
        self._lock = threading.RLock()  # guards the four fields below
        self._clients: dict[str, _Client] = {}
        self._tables: dict[str, GroupTable | None] = {}
        self._left: set[str] = (
            set()
        )  # groups of clients that are gone, until the others are notified
        self._unsaid = False  # whether the process entry still names a client that is gone
        self._queue_locks = QueueLocks(root, now)
        self.notices = Notices(
            root,
            self._on_notice,
            lambda question: self.calls.answer(question),
            self._on_deaths,
            listed=not read_only,
        )
        self._read_message = read_message

    @made_once
    def calls(self) -> ClientCalls:
        """Requests to single clients; loaded with the first one."""
        from .broker_to_client import ClientCalls

        return ClientCalls(self.notices, self._handler, self._read_message)

    # -- joining and leaving ------------------------------------------------------------------

    def connect(self, client_id: str, handler: ClientHandler, *, remote: bool = False) -> None:
        """See MemberApi.connect. A ``remote`` client is gone after 120 s without a heartbeat."""
        if not client_id:
            raise BrokerSystemError("a client needs an id")
        self.notices.open()
        with self._lock:
            if client_id in self._clients:
                raise BrokerSystemError(f"client {client_id} is connected already")
            self._clients[client_id] = _Client(client_id, handler, self._now(), remote=remote)

    def heartbeat(self, data: HeartbeatData) -> None:
        """See MemberApi.heartbeat."""
        refused: BrokerError | None = None
        loud: dict[str, bool] = {}
        for consumer in data.consumers:
            loud[consumer.group_name] = self._prepare_group(consumer.group_name)
        with self._joining(data), self._lock:
            client = self._clients.get(data.client_id)
            if client is None:
                raise BrokerSystemError(f"client {data.client_id} is not connected")
            before = {group: self._read_table(group) for group in loud}
            joined: dict[str, ConsumerData] = {}
            for consumer in data.consumers:
                try:
                    self._join(client, consumer, before[consumer.group_name])
                except BrokerSystemError as error:
                    refused = refused or error
                else:
                    joined[consumer.group_name] = consumer
            touched = {g for g, part in joined.items() if client.consumers.get(g) != part}
            changed = {group for group in joined if group not in client.consumers}
            client.last_heartbeat = self._now()
            client.beat = time.monotonic_ns()
            left = client.consumers.keys() - loud.keys()  # and could not be left in another way
            stay = {g: part for g, part in client.consumers.items() if g not in left}
            self._change(client.within(data.producers, {**stay, **joined}))
            self._leave(data.client_id, left)
            self._left.update(left)
            for group in joined.keys() - changed:
                if _topics_of(before[group]) != _topics_of(self._read_table(group)):
                    changed.add(group)
        if touched or changed:
            self._tell({group: group in changed and loud[group] for group in touched | changed})
        if left:
            self._end_leaving()
        if refused is not None:
            raise refused

    def _prepare_group(self, group: str) -> bool:
        """Make the group and its retry topic; returns whether to notify about changes of the group.

        Raises InvalidNameError, and nothing is made, if the retry topic may not be.
        """
        if len(group) > CONSUMING_GROUP_MAX_LENGTH and self._topics.get(retry_topic(group)) is None:
            check_consuming_group(group)
        try:
            config = self._groups.for_use(group)
        except SubscriptionGroupNotExistError:
            return True  # it may join, its pulls are refused (ClientManageProcessor)
        self._topics.for_own_use(retry_topic(group), config.retry_queue_nums)
        return config.notify_consumer_ids_changed_enable

    def _joining(self, data: HeartbeatData) -> AbstractContextManager[object]:
        """Let no other process join while a client is looked up and published, if it may be refused
        for its id. Entering raises OSError and WriteLockTimeoutError."""
        client = self._clients.get(data.client_id)
        if (
            client is None
            or not self._refuse_equal_client_ids
            or all(
                consumer.message_model is not MessageModel.CLUSTERING
                or consumer.group_name in client.consumers
                for consumer in data.consumers
            )
        ):
            return nullcontext()
        return self._joins.held()

    def _join(self, client: _Client, consumer: ConsumerData, table: GroupTable | None) -> None:
        group = consumer.group_name
        if not self._refuse_equal_client_ids or (
            consumer.message_model is not MessageModel.CLUSTERING
        ):
            return
        own = self.notices.name
        for member in table.members if table else ():
            if member.client.client_id == client.client_id and member.process_entry != own:
                holder = f"process {member.client.pid} on {member.client.host}"
                error = ClientIdInUseError(group, client.client_id, holder)
                if group not in client.consumers:
                    raise error
                logger.warning("%s", error)  # the other one was let in: its settings allow it

    def unregister_client(
        self, client_id: str, producer_group: str | None = None, consumer_group: str | None = None
    ) -> None:
        """See MemberApi.unregister_client."""
        with self._lock:
            client = self._clients.get(client_id)
            if client is None:
                return
            left = [group for group in client.consumers if group == consumer_group]
            producers = [group for group in client.producers if group != producer_group]
            consumers = {g: data for g, data in client.consumers.items() if g not in left}
            self._leave(client_id, left)
            self._left.update(left)
            self._change(client.within(producers, consumers))
        self._end_leaving()

    def disconnect(self, client_id: str) -> None:
        """See MemberApi.disconnect."""
        with self._lock:
            client = self._clients.get(client_id)
            if client is not None:
                self._left.update(client.consumers, self._queue_locks.unlock_all(client_id))
                self._unsaid = True
                del self._clients[client_id]
        self._end_leaving()

    def _end_leaving(self) -> None:
        """Write that clients are gone, and notify the others; what fails is repeated later."""
        with self._lock:
            if self._unsaid:
                self._say(self._clients)
            left = frozenset(self._left)
        if left:
            self._tell_left(left)
            with self._lock:
                self._left -= left

    def _leave(self, client_id: str, groups: Iterable[str]) -> None:
        for group in groups:
            self._queue_locks.unlock_all(client_id, group)

    def scan_not_active_channel(self) -> None:
        """Disconnect remote clients that have been silent for 120 s; every 10 s is often enough.

        Also completes the leaving of others that was interrupted.
        """
        now = self._now()
        with self._lock:
            silent = [
                client.client_id
                for client in self._clients.values()
                if client.remote and is_expired(client.last_heartbeat, now)
            ]
        try:
            for gone in silent:
                logger.warning("client is gone, it was silent for too long: client_id=%s", gone)
                self.disconnect(gone)
            self._end_leaving()
        except OSError:  # the disk is full: the next scan tries again
            logger.exception("clients are gone, and others could not be notified")

    def hurry(self, seconds: float) -> None:
        """Have a client that waits to join end its wait so many seconds from now: all is closed."""
        self._joins.hurry(seconds)

    def close(self, within_s: float = MAX_CLOSE_S) -> None:
        """Disconnect all clients and leave. Calling twice is fine, and completes an interrupted
        close.

        Waits ``within_s`` for a client that is in a notification.
        """
        with self._lock:
            self._left.update(*(client.consumers for client in self._clients.values()))
            self._clients = {}
        with ExitStack() as stack:  # in reverse order; each step runs whatever the others raise
            # The process entry is removed, and they with it: no write is needed, which a full disk
            # refuses.
            stack.callback(self.notices.close, lambda: self._tell_left(self._left), within_s)
            stack.callback(self._queue_locks.close)

    # -- members ------------------------------------------------------------------------------

    def consumer_ids(self, group: str) -> list[str]:
        """See MemberApi.consumer_ids."""
        table = self._read_table(group)
        return [] if table is None else [member.client.client_id for member in table.members]

    def consumer_connection(self, group: str) -> list[ClientDescription]:
        """See MemberApi.consumer_connection."""
        table = self._read_table(group, with_queues=True)
        return [] if table is None else [member.client for member in table.members]

    def group_table(self, group: str) -> GroupTable | None:
        """Return a group with its subscriptions, None if it has no member. For pulls, so it is
        cached until a notice comes, where notices come at all."""
        if self.notices.name is None:
            return self._read_table(group)
        known = self._tables.get(group)
        if known is not None:
            return known
        with self._lock:
            if group not in self._tables:
                self._tables[group] = self._read_table(group)
            return self._tables[group]

    def _read_table(self, group: str, *, with_queues: bool = False) -> GroupTable | None:
        return group_table(
            member
            for info in self.notices.processes.living()
            for member in members_of(info, group, with_queues=with_queues)
        )

    # -- queue locks --------------------------------------------------------------------------

    def lock_queues(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> set[MessageQueue]:
        """See MemberApi.lock_queues."""
        with self._lock:  # it leaves the group before or after, and its locks go with it
            client = self._clients.get(client_id)
            if client is None:
                raise BrokerSystemError(f"client {client_id} is not connected")
            if group not in client.consumers:
                raise BrokerSystemError(f"client {client_id} does not consume in group {group}")
            return self._queue_locks.lock(group, client_id, queues, remote=client.remote)

    def unlock_queues(self, group: str, client_id: str, queues: Sequence[MessageQueue]) -> None:
        """See MemberApi.unlock_queues."""
        if self._queue_locks.unlock(group, client_id, queues):
            # A member that was refused them would try again with its next round, in up to 20 s.
            self._tell({group: self._is_loud(group)})

    # -- notifying the others -----------------------------------------------------------------

    def _tell_left(self, groups: Iterable[str]) -> None:
        left = {group: self._is_loud(group) for group in groups}
        if left:
            self._tell(left)

    def _tell(self, groups: Mapping[str, bool]) -> None:
        """Notify that members of groups have changed; True for those whose members rebalance."""
        with self._lock:
            self._tables.clear()
        self.notices.tell({"kind": MEMBERS, "groups": dict(groups)})

    def _is_loud(self, group: str) -> bool:
        config = self._groups.get(group)
        return config is None or config.notify_consumer_ids_changed_enable

    def _change(self, client: _Client) -> None:
        self._say({**self._clients, client.client_id: client})

    def _say(self, clients: dict[str, _Client]) -> None:
        """Publish these clients. After a failure nothing has changed: it can be repeated, and the
        others are notified then."""
        self.notices.say([client.json() for client in clients.values()])
        self._clients = clients
        self._unsaid = False
        self._tables.clear()

    # -- notifications (from the notices' threads) --------------------------------------------

    def _on_deaths(self, dead: list[ProcessInfo]) -> None:
        for info in dead:
            logger.info("a process is gone: pid=%s", info.content.get("pid"))
        # First: what it had in memory goes with its process entry, and its successors begin there.
        try:
            self._adopt_progress([info.name for info in dead])
        except Exception:
            logger.exception("the progress of the dead is lost, some messages come again")
        self._tell_left({group for info in dead for group in groups_of(info)})

    def _on_notice(self, control_message: ControlMessage) -> None:
        kind = control_message["kind"]
        if kind == MEMBERS:
            with self._lock:
                self._tables.clear()
            for group, loud in control_message["groups"].items():
                for handler in self._handlers(group) if loud else ():
                    _call(partial(handler.notify_consumer_ids_changed, group))
        elif kind == RESET:
            group, topic = control_message["group"], control_message["topic"]
            known = {i: self._progress_of(group, topic, i) for i in control_message["queues"]}
            offsets = {queue_id: offset for queue_id, offset in known.items() if offset is not None}
            for handler in self._handlers(group):
                _call(partial(handler.reset_offset, group, topic, offsets))
        elif kind == TOPICS:
            topics = frozenset(control_message["topics"])
            for handler in self._subscribers(topics):
                _call(partial(handler.notify_topics_changed, topics))
        elif kind == CHECK:
            self.calls.take_check(control_message)

    def _handler(self, client_id: str, group: str | None) -> ClientHandler | None:
        client = self._clients.get(client_id)
        if client is None or (group is not None and group not in client.consumers):
            return None
        return client.handler

    def _handlers(self, group: str) -> list[ClientHandler]:
        with self._lock:
            return [c.handler for c in self._clients.values() if group in c.consumers]

    def _subscribers(self, topics: frozenset[str]) -> list[ClientHandler]:
        """Give the clients here that subscribe to one of the topics."""
        with self._lock:
            clients = list(self._clients.values())
        return [
            client.handler
            for client in clients
            if any(
                item.topic in topics
                for consumer in client.consumers.values()
                for item in consumer.subscriptions
            )
        ]


def _topics_of(table: GroupTable | None) -> set[str]:
    return set() if table is None else set(table.subscriptions)


def _call(handler: Callable[[], None]) -> None:
    """Call one client; an error does not keep the others from being called."""
    try:
        handler()
    except (Exception, SystemExit):
        logger.exception("a client could not follow a notice")
