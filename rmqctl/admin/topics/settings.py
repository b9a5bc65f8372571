"""Creating topics and changing their settings."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.java_store import config_of
from broker.tables.topics import TopicManager
from rmqctl.admin.settings import SettingsAlteration, SettingsCreation, SettingsTable, now_ms
from rmqctl.admin.unreachable_messages import unread_note, unreadable_note
from rmqctl.errors import CliError, NotFound, Refused
from storage.configs.topics import PERM_READ, PERM_WRITE, TopicConfig

from .rows import ChangedTopicRow, CreatedTopicRow

if TYPE_CHECKING:
    from broker.tables.shared_table import WriteLockScope
    from storage.readonly import StoreView


def create(view: "StoreView", configs: Sequence[TopicConfig]) -> SettingsCreation[TopicConfig]:
    """Create topics. Rows are CreatedTopicRow.

    Refused for a topic that exists with other settings; NoPermissionError for one of the system.
    """
    return SettingsCreation(TopicTable(view), configs)


def alter(
    view: "StoreView", topics: Iterable[str], values: Mapping[str, Any]
) -> SettingsAlteration[TopicConfig]:
    """Change settings of topics; ``values`` are fields of TopicConfig. Rows are ChangedTopicRow."""
    return SettingsAlteration(TopicTable(view), topics, values)


class TopicTable(SettingsTable[TopicConfig]):
    """The topics of a store."""

    noun = "topic"
    created_row = CreatedTopicRow
    changed_row = ChangedTopicRow
    manager: TopicManager

    def open(self, write_lock: "WriteLockScope") -> TopicManager:
        """See SettingsTable."""
        view = self.view
        config = config_of(view.root)
        return TopicManager(
            view.root,
            config,
            write_lock=write_lock,
            queues=view.queues,
            now=now_ms,
            notify=self._notify,
        )

    def _notify(self, topics: Collection[str]) -> None:
        from broker.members.notices import tell_topics

        tell_topics(self.view.root, topics)

    def check_changeable(self, name: str) -> None:
        """See SettingsTable."""
        self.manager.check_changeable(name)

    def missing(self, name: str) -> NotFound:
        """See SettingsTable."""
        return NotFound(f"topic {name} does not exist in {self.view.root}")

    def conflict(self, item: TopicConfig, known: TopicConfig) -> CliError | None:
        """See SettingsTable."""
        if self.is_derived(known):
            return None
        return Refused(
            f"topic {item.topic_name} exists already with {known.read_queue_nums} read "
            f"and {known.write_queue_nums} write queues, perm {known.perm}; "
            f"'rmqctl topic alter {item.topic_name}' changes it"
        )

    def created(self, item: TopicConfig, created: bool | None) -> CreatedTopicRow:
        """See SettingsTable."""
        name, read, write, perm = item[:4]
        return CreatedTopicRow(name, created, read, write, perm, item.order)

    def consequence(self, setting: str, old: TopicConfig, new: TopicConfig) -> str | None:
        """See SettingsTable."""
        view, topic, read = self.view, old.topic_name, new.read_queue_nums
        if setting == "read_queue_nums" and read < old.read_queue_nums:
            return unread_note(view, topic, read)
        if setting == "write_queue_nums" and new.write_queue_nums < old.write_queue_nums:
            return f"queues from {new.write_queue_nums} on take no new messages"
        if setting == "write_queue_nums" and new.write_queue_nums > read:
            return f"consumers do not read queues from {read} on"
        lost = [
            words
            for bit, words in ((PERM_WRITE, "sending"), (PERM_READ, "consuming"))
            if old.perm & bit and not new.perm & bit
        ]
        if setting != "perm" or not lost:
            return None
        unread = unreadable_note(view, topic) if "consuming" in lost else ""
        return f"{' and '.join(lost)} will be refused{unread}"

    def consequence_of_creation(self, item: TopicConfig, known: TopicConfig | None) -> str | None:
        """See SettingsTable."""
        topic, read = item.topic_name, item.read_queue_nums
        if known is None or read >= known.read_queue_nums:
            return None
        return (
            f"topic {topic} has {known.read_queue_nums} queues on disk: "
            f"{unread_note(self.view, topic, read)}"
        )

    def is_derived(self, item: TopicConfig) -> bool:
        """See SettingsTable."""
        return item.derived
