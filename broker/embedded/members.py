"""Members, as a broker in this process answers about them: wiring only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from broker.errors import NoPermissionError
from broker.filter.subscription import message_filter
from broker.tables.shared_table import READ_ONLY
from storage.clock import now_ms

if TYPE_CHECKING:
    from broker.api.members import (
        ClientDescription,
        ClientHandler,
        ConsumeDirectlyResult,
        HeartbeatData,
        SubscriptionData,
    )
    from broker.config import BrokerConfig
    from broker.members.manager import MemberManager
    from broker.offset.offset_manager import ConsumerOffsetManager
    from broker.tables.groups import GroupManager
    from broker.tables.topics import TopicManager
    from storage.format.message import MessageQueue
    from storage.readonly import StoreView
    from storage.store import MessageStore


class MembersRole:
    """The Members role of an EmbeddedBroker; nothing is started before a client connects."""

    config: BrokerConfig
    _store: MessageStore | None
    _topics: TopicManager
    _groups: GroupManager
    _progress: ConsumerOffsetManager

    @property
    def view(self) -> StoreView:
        """The store for reading."""
        raise AttributeError("view")

    @cached_property
    def members(self) -> MemberManager:
        """The rules of members, for other parts of the broker."""
        from broker.members.manager import MemberManager

        # Only readers load the view: a producer alone does not.
        store = self._store
        return MemberManager(
            self.view.root if store is None else store.root,
            self._topics,
            self._groups,
            now=now_ms if store is None else store.now,
            progress_of=lambda *queue: self._progress.query(*queue).offset,
            adopt_progress=lambda processes: self._progress.adopt(processes),
            read_message=lambda offset: self.view.look_message_by_offset(offset),
            refuse_equal_client_ids=self.config.refuse_equal_client_ids,
        )

    def connect(self, client_id: str, handler: ClientHandler) -> None:
        """See Broker.connect."""
        self._check_writable()
        self.members.connect(client_id, handler)

    def heartbeat(self, data: HeartbeatData) -> None:
        """See Broker.heartbeat."""
        self._check_writable()
        self.members.heartbeat(data)

    def unregister_client(
        self, client_id: str, producer_group: str | None = None, consumer_group: str | None = None
    ) -> None:
        """See Broker.unregister_client."""
        self.members.unregister_client(client_id, producer_group, consumer_group)

    def disconnect(self, client_id: str) -> None:
        """See Broker.disconnect."""
        self.members.disconnect(client_id)

    def consumer_ids(self, group: str) -> list[str]:
        """See Broker.consumer_ids."""
        return self.members.consumer_ids(group)

    def consumer_connection(self, group: str) -> list[ClientDescription]:
        """See Broker.consumer_connection."""
        return self.members.consumer_connection(group)

    def lock_queues(
        self, group: str, client_id: str, queues: Sequence[MessageQueue]
    ) -> set[MessageQueue]:
        """See Broker.lock_queues."""
        self._check_writable()
        return self.members.lock_queues(group, client_id, queues)

    def unlock_queues(self, group: str, client_id: str, queues: Sequence[MessageQueue]) -> None:
        """See Broker.unlock_queues."""
        self.members.unlock_queues(group, client_id, queues)

    def check_client(self, client_id: str, group: str, subscription: SubscriptionData) -> None:
        """See Broker.check_client."""
        del client_id, group
        message_filter(
            subscription.sub_string,
            subscription.expression_type,
            enable_property_filter=bool(self.config.enable_property_filter),
        )

    def consumer_running_info(self, group: str, client_id: str) -> Mapping[str, Any]:
        """See Broker.consumer_running_info."""
        self._check_writable()
        return self.members.calls.consumer_running_info(group, client_id)

    def consumer_status(self, group: str, topic: str, client_id: str) -> Mapping[MessageQueue, int]:
        """See Broker.consumer_status."""
        self._check_writable()
        return self.members.calls.consumer_status(group, topic, client_id)

    def consume_message_directly(
        self, group: str, client_id: str, commitlog_offset: int
    ) -> ConsumeDirectlyResult:
        """See Broker.consume_message_directly."""
        self._check_writable()
        return self.members.calls.consume_message_directly(group, client_id, commitlog_offset)

    def _check_writable(self) -> MessageStore:
        if self._store is None:
            raise NoPermissionError(READ_ONLY)
        return self._store

    def _scan_members(self) -> None:
        if "members" in vars(self):
            self.members.scan_not_active_channel()

    def _process_entry(self) -> str | None:
        return self.members.notices.name if "members" in vars(self) else None

    def _close_members(self, within_s: float) -> None:
        if "members" in vars(self):
            self.members.close(within_s)
