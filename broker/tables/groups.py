"""The rules of consumer groups: how one comes to be (SubscriptionGroupManager)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.errors import (
    BrokerSystemError,
    InvalidNameError,
    NoPermissionError,
    SubscriptionGroupNotExistError,
)
from broker.validation import TOPIC_MAX_LENGTH, check_group
from storage.configs.journal import Journal
from storage.configs.subscription_groups import (
    SYSTEM_GROUP_PREFIX,
    SubscriptionGroupConfig,
    subscription_groups_file,
    system_groups,
)
from storage.format.message import retry_topic
from storage.format.names import exact_str
from storage.format.shapes import MAX_QUEUES

from .shared_table import Check, SharedTable, Update, WriteLockScope

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from broker.tables.topics import TopicManager
    from storage.files.fs import FileSystem

CONSUMING_GROUP_MAX_LENGTH: Final = TOPIC_MAX_LENGTH - len(retry_topic(""))
_SHOWN: Final = 40


def check_consuming_group(group: str) -> None:
    """Refuse a name that no group with members may have: up to 120 characters, because its retries
    need a topic. Raises InvalidNameError, also for names that no group at all may have.
    """
    check_group(group)
    if len(group) > CONSUMING_GROUP_MAX_LENGTH:
        raise InvalidNameError(
            f"group {group[:_SHOWN] + '...'!r} has {len(group)} characters, allowed are "
            f"{CONSUMING_GROUP_MAX_LENGTH} for a group that consumes: {retry_topic('')} and its "
            f"name are a topic, and topics have up to {TOPIC_MAX_LENGTH}"
        )


class GroupManager:
    """The consumer groups of one store, shared with every process that uses it.

    ``write_lock`` None means read-only. Retry topics of ``topics`` get more queues right before
    their groups do; None: with the next heartbeat of a member, or the next retry.
    """

    def __init__(
        self,
        root: Path,
        config: BrokerConfig,
        *,
        write_lock: WriteLockScope | None,
        now: Callable[[], int],
        changes: Callable[[], int] | None = None,
        fs: FileSystem | None = None,
        topics: TopicManager | None = None,
    ) -> None:
        self._config = config
        self._topics = topics
        self._table: SharedTable[SubscriptionGroupConfig] = SharedTable(
            subscription_groups_file(root, fs),
            system_groups(),
            kind="group",
            command="updateSubGroup",
            write_lock=write_lock,
            journal=Journal(root, fs),
            now=now,
            changes=changes,
        )

    def all(self) -> dict[str, SubscriptionGroupConfig]:
        """Give all groups: the system's, and those of the file."""
        return self._table.all()

    def get(self, group: str) -> SubscriptionGroupConfig | None:
        """Read one group's settings; None if there is no such group."""
        return self._table.get(group)

    def for_use(self, group: str) -> SubscriptionGroupConfig:
        """Find a group, creating it where that is allowed (findSubscriptionGroupConfig).

        Raises InvalidNameError and SubscriptionGroupNotExistError. On a store that is open for
        reading only, an unknown group has the settings it would be created with.
        """
        found = self._table.recent(group)
        if found is not None:
            return found
        check_group(group)
        automatic = self._config.auto_create_subscription_group
        if not (automatic or group.startswith(SYSTEM_GROUP_PREFIX)):
            raise SubscriptionGroupNotExistError(f"group {group} does not exist; create it first")
        created = SubscriptionGroupConfig(group)
        return self._table.create(group, created) if self._table.writable else created

    def update(
        self,
        config: SubscriptionGroupConfig,
        note: Mapping[str, Any] | None = None,
        check: Check[SubscriptionGroupConfig] | None = None,
    ) -> bool:
        """Create or change a group; False if it has these settings already
        (updateSubscriptionGroupConfig).

        Noted in the change journal before it is done; ``check`` gets the settings right before the
        change. Raises InvalidNameError, NoPermissionError and BrokerSystemError; then nothing has
        changed. If the file cannot be replaced, the group is as it was, and its retry topic may
        have more queues.
        """
        return bool(self.update_all([Update(config, note or {}, check)]))

    def update_all(self, updates: Iterable[Update[SubscriptionGroupConfig]]) -> set[str]:
        """Create or change many groups at once, all or none; gives the names of those that changed.
        Otherwise like ``update``; raises BrokerSystemError as it does."""
        by_name = {}
        for update in updates:
            name = exact_str(update.item.group_name)
            by_name[name] = update._replace(item=update.item._replace(group_name=name))
        for group, update in by_name.items():
            check_group(group)
            queues = update.item.retry_queue_nums
            if not 0 <= queues <= MAX_QUEUES:
                raise BrokerSystemError(
                    f"group {group} cannot have {queues} retry queues (0 to {MAX_QUEUES})"
                )
        if self._topics is not None:  # first: more queues do no harm if the groups stay as they are
            self._add_retry_queues(self._topics, by_name)
        return self._table.update_all(by_name)

    def _add_retry_queues(
        self, topics: TopicManager, updates: Mapping[str, Update[SubscriptionGroupConfig]]
    ) -> None:
        """Give more queues to the retry topics of groups that are new or get another number."""
        olds = self._table.check_all(updates)
        queues: dict[str, int] = {}
        notes: dict[str, Mapping[str, Any]] = {}
        for group, update in updates.items():
            old, wanted, topic = olds[group], update.item.retry_queue_nums, retry_topic(group)
            if old is not None and old.retry_queue_nums == wanted:
                continue
            if topics.lacks_queues(topic, wanted):
                queues[topic], notes[topic] = wanted, update.note
        if queues:
            topics.add_queues(queues, notes)

    def delete(
        self,
        group: str,
        note: Mapping[str, Any] | None = None,
        check: Check[SubscriptionGroupConfig] | None = None,
    ) -> bool:
        """Remove the settings of a group; False if it has none (deleteSubscriptionGroupConfig).

        Its progress stays: move it to None to remove it too. Noted and checked as for ``update``.
        Raises NoPermissionError for the groups that every broker makes at its start.
        """
        check_group(group)
        if group in self._table.system:
            raise NoPermissionError(f"group {group} belongs to the system and cannot be deleted")
        return self._table.remove(group, note or {}, check)
