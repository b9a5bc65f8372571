"""Creating groups and changing their settings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.errors import NoPermissionError
from broker.java_store import config_of
from broker.tables.groups import GroupManager
from broker.validation import check_group
from rmqctl.admin.settings import SettingsAlteration, SettingsCreation, SettingsTable, now_ms
from rmqctl.admin.topics.settings import TopicTable
from rmqctl.admin.unreachable_messages import retries_note, unread_of_group
from rmqctl.errors import CliError, NotFound, Refused
from storage.configs.subscription_groups import SubscriptionGroupConfig, system_groups
from storage.counted import counted
from storage.format.message import retry_topic

from .rows import ChangedGroupRow, CreatedGroupRow

if TYPE_CHECKING:
    from broker.tables.shared_table import WriteLockScope
    from storage.readonly import StoreView

_NOTES: Final[Mapping[tuple[str, Any], str]] = {
    ("consume_enable", False): "its members get no messages",
    ("consume_broadcast_enable", False): "members that broadcast are refused",
    ("retry_queue_nums", 0): "failed messages are dropped without a retry",
    ("retry_max_times", 0): "a message that fails once becomes a dead letter",
}
_CLIENTS_LIMIT: Final = "consumers with a limit of their own use that; Java's always do"


def create(
    view: "StoreView", configs: Sequence[SubscriptionGroupConfig]
) -> SettingsCreation[SubscriptionGroupConfig]:
    """Create groups. Rows are CreatedGroupRow.

    Refused for a group that exists with other settings; NoPermissionError for one of the system.
    """
    return SettingsCreation(GroupTable(view), configs)


def alter(
    view: "StoreView", groups: Iterable[str], values: Mapping[str, Any]
) -> SettingsAlteration[SubscriptionGroupConfig]:
    """Change settings of groups; ``values`` are fields of SubscriptionGroupConfig. Rows are
    ChangedGroupRow."""
    return SettingsAlteration(GroupTable(view), groups, values)


class GroupTable(SettingsTable[SubscriptionGroupConfig]):
    """The groups of a store."""

    noun = "group"
    created_row = CreatedGroupRow
    changed_row = ChangedGroupRow

    def open(self, write_lock: "WriteLockScope") -> GroupManager:
        """See SettingsTable."""
        root = self.view.root
        self._topics = TopicTable(self.view).manager
        return GroupManager(
            root, config_of(root), write_lock=write_lock, now=now_ms, topics=self._topics
        )

    def check_changeable(self, name: str) -> None:
        """Refuse an illegal name, and the groups that every broker creates at start."""
        check_group(name)
        if name in system_groups():
            raise NoPermissionError(f"group {name} belongs to the system and cannot be changed")

    def missing(self, name: str) -> NotFound:
        """See SettingsTable."""
        return NotFound(
            f"group {name} has no settings in {self.view.root}; 'rmqctl group create' creates them"
        )

    def conflict(self, item: SubscriptionGroupConfig, known: SubscriptionGroupConfig) -> CliError:
        """See SettingsTable."""
        return Refused(
            f"group {item.group_name} exists already with other settings; "
            f"'rmqctl group alter {item.group_name}' changes them"
        )

    def created(self, item: SubscriptionGroupConfig, created: bool | None) -> CreatedGroupRow:
        """See SettingsTable."""
        return CreatedGroupRow(
            item.group_name,
            created,
            item.retry_max_times,
            item.retry_queue_nums,
            item.consume_enable,
            item.consume_from_min_enable,
            item.consume_broadcast_enable,
        )

    def consequence(
        self, setting: str, old: SubscriptionGroupConfig, new: SubscriptionGroupConfig
    ) -> str | None:
        """See SettingsTable."""
        view, group, after = self.view, new.group_name, getattr(new, setting)
        note = _NOTES.get((setting, after))
        if setting == "retry_max_times":
            note = note or _CLIENTS_LIMIT
            waits = retries_note(view, group) if after < old.retry_max_times else ""
            then = f"; {waits}, and the new limit applies to their next failure"
            return note + then if waits else note
        if setting == "retry_queue_nums" and not after:
            waits = retries_note(view, group)
            return f"{note}; {waits}, and a retry that fails again is dropped" if waits else note
        if setting == "retry_queue_nums":
            return self._more_queues(new)
        if setting == "consume_enable" and not after:
            return f"{note}{unread_of_group(view, group)}"
        return note

    def consequence_of_creation(
        self, item: SubscriptionGroupConfig, known: SubscriptionGroupConfig | None
    ) -> str | None:
        """See SettingsTable."""
        del known
        return self._more_queues(item)

    def _more_queues(self, group: SubscriptionGroupConfig) -> str | None:
        """Tell that the retry topic of a group gets more queues, too; None if it does not."""
        topic, queues = retry_topic(group.group_name), group.retry_queue_nums
        if not self._topics.lacks_queues(topic, queues):
            return None
        return f"topic {topic} gets {counted(queues, 'queue')}, too"
