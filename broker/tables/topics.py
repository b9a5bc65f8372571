"""The rules of topics: permissions to send and pull, and how a topic is created
(TopicConfigManager)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.errors import (
    BrokerSystemError,
    InvalidNameError,
    NoPermissionError,
    TopicNotExistError,
)
from broker.validation import (
    check_changeable_topic,
    check_send_topic,
    check_topic,
)
from storage.configs.journal import Journal
from storage.configs.topics import (
    PERM_INHERIT,
    PERM_READ,
    PERM_WRITE,
    TopicConfig,
    queues_with,
    system_topics,
    topics_file,
)
from storage.format.message import (
    AUTO_CREATE_TOPIC_KEY_TOPIC,
    NOT_ALLOWED_SEND_TOPICS,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
)
from storage.format.names import COMMITLOG, exact_str
from storage.format.shapes import MAX_QUEUES

from .shared_table import Check, SharedTable, Update, WriteLockScope

if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from storage.files.fs import FileSystem

_MAX_PERM: Final = 15


class NewTopic(TopicConfig):
    """Settings that a topic does not have yet: it is to be created with them by a send."""

    __slots__ = ()


class TopicManager:
    """The topics of one store, shared with every process that uses it.

    ``queues`` lists the queues that hold messages; ``write_lock`` None means read-only; ``notify``
    is called with the names of topics that were made, changed or deleted.
    """

    def __init__(
        self,
        root: Path,
        config: BrokerConfig,
        *,
        write_lock: WriteLockScope | None,
        queues: Callable[[], list[tuple[str, int]]],
        now: Callable[[], int],
        changes: Callable[[], int] | None = None,
        notify: Callable[[Collection[str]], None] = lambda _: None,
        fs: FileSystem | None = None,
    ) -> None:
        self.config = config
        """Settings of the broker, which name its own topics."""
        self._queues = queues
        self._log = root / COMMITLOG
        self._table: SharedTable[TopicConfig] = SharedTable(
            topics_file(root, fs),
            system_topics(
                config.broker_cluster_name,
                config.broker_name,
                auto_create=config.auto_create_topic_enable,
            ),
            kind="topic",
            command="updateTopic",
            write_lock=write_lock,
            journal=Journal(root, fs),
            now=now,
            changes=changes,
            changed=notify,
            check_new=self._refuse_other_case,
        )

    def changes(self) -> int:
        """Give another number when settings have changed, of groups too."""
        return self._table.changes()

    def all(self) -> dict[str, TopicConfig]:
        """Give all topics: the system's, those of the file, and those known only from queues."""
        topics = self._table.all()
        untold: dict[str, list[int]] = {}
        for topic, queue_id in self._queues():
            if topic not in topics:
                untold.setdefault(topic, []).append(queue_id)
        for topic, queue_ids in untold.items():
            topics[topic] = _of_queues(topic, queue_ids)
        return topics

    def get(self, topic: str) -> TopicConfig | None:
        """Read one topic's settings; None if there is no such topic.

        A topic without settings but with messages (topics.json was lost; light queues) can be
        read, not written.
        """
        found = self._table.get(topic)
        if found is None:
            queue_ids = [queue_id for name, queue_id in self._queues() if name == topic]
            return _of_queues(topic, queue_ids) if queue_ids else None
        return found

    def for_sending(self, topic: str, default_topic: str, default_queue_nums: int) -> TopicConfig:
        """Find the topic of a send, creating it where that is allowed (msgCheck).

        Raises what ``to_send_to`` raises. On a store that is open for reading only, an unknown
        topic has the settings it would be created with.
        """
        found = self.to_send_to(topic, default_topic, default_queue_nums)
        if not isinstance(found, NewTopic) or not self._table.writable:
            return found
        self._table.create(topic, TopicConfig(*found))
        return self.to_send_to(topic, default_topic, default_queue_nums)

    def to_send_to(self, topic: str, default_topic: str, default_queue_nums: int) -> TopicConfig:
        """Find the topic of a send; one that a send may create is a ``NewTopic``, and is not
        created yet.

        Raises InvalidNameError, NoPermissionError and TopicNotExistError.
        """
        found = self._table.recent(topic)
        if found is None or topic in NOT_ALLOWED_SEND_TOPICS:
            check_send_topic(topic)
        if found is None:
            found = self._new_in_send(topic, default_topic, default_queue_nums)
        if not found.perm & PERM_WRITE:
            raise NoPermissionError(
                f"topic {topic} may not be written: its perm is {found.perm}, write is {PERM_WRITE}"
            )
        # Java too requires both only here: its name server hides other topics' queues.
        if found.order and not self.config.broker_permission & PERM_WRITE:
            raise NoPermissionError(f"broker {self.config.broker_name} may not be written")
        return found

    def for_own_use(self, topic: str, queue_nums: int) -> TopicConfig:
        """Find a topic that the broker fills itself (retries, dead letters, transactions).

        A new one is readable and writable (createTopicInSendMessageBackMethod). One with fewer
        queues gets ``queue_nums``, so that consumers read all that the broker fills; 4.9 leaves it
        as it is. On a store that is open for reading only it stays.
        """
        found = self._table.recent(topic)
        if found is None:
            check_topic(topic)
            found = self._table.create(topic, TopicConfig(topic, queue_nums, queue_nums))
        if self._table.writable and _with_queues(found, queue_nums) != found:
            found = self.add_queues({topic: queue_nums}, {topic: {}}).get(topic, found)
        return found

    def lacks_queues(self, topic: str, queue_nums: int) -> bool:
        """Whether a topic has settings, and fewer than ``queue_nums`` read or write queues."""
        found = self._table.get(topic)
        return found is not None and _with_queues(found, queue_nums) != found

    def add_queues(
        self, queue_nums: Mapping[str, int], notes: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, TopicConfig]:
        """Raise the read and write queues of topics to ``queue_nums``, never lower, all topics or
        none; gives their settings then.

        A topic without settings is left out. Noted in the change journal with its own of ``notes``.
        Raises NoPermissionError on a store that is open for reading only.
        """
        return self._table.adapt_all(lambda topic, old: _with_queues(old, queue_nums[topic]), notes)

    def write_system_topics(self) -> None:
        """Write the topics that every broker has to topics.json, as after a broker's start.

        Changes nothing if it names them already.
        """
        topic = self._table.system[SCHEDULE_TOPIC]
        self._table.create(topic.topic_name, topic)

    def for_pulling(self, topic: str, queue_id: int) -> TopicConfig:
        """Find the topic of a pull (PullMessageProcessor).

        Raises InvalidNameError, TopicNotExistError, NoPermissionError, and BrokerSystemError for a
        queue that the topic does not have.
        """
        found = self._table.recent(topic) or self.get(topic)
        if found is None:
            check_topic(topic)
            raise TopicNotExistError(f"topic {topic} does not exist; create it, or send to it")
        check_readable(found)
        if not 0 <= queue_id < found.read_queue_nums:
            raise BrokerSystemError(
                f"topic {topic} has no queue {queue_id}: "
                f"it has {found.read_queue_nums} read queues, numbered from 0"
            )
        return found

    def update(
        self,
        config: TopicConfig,
        note: Mapping[str, Any] | None = None,
        check: Check[TopicConfig] | None = None,
    ) -> bool:
        """Create or change a topic; False if it has these settings already (updateTopicConfig).

        Noted in the change journal before it is done; ``check`` gets the settings right before the
        change. Raises InvalidNameError, NoPermissionError and BrokerSystemError; then nothing has
        changed.
        """
        return bool(self.update_all([Update(config, note or {}, check)]))

    def update_all(self, updates: Iterable[Update[TopicConfig]]) -> set[str]:
        """Create or change many topics at once, all or none; gives the names of those that changed.
        Otherwise like ``update``."""
        by_name = {}
        for update in updates:
            name = exact_str(update.item.topic_name)
            by_name[name] = update._replace(item=update.item._replace(topic_name=name))
        for update in by_name.values():
            self._check_settings(update.item)
        return self._table.update_all(by_name)

    def delete(
        self,
        topic: str,
        note: Mapping[str, Any] | None = None,
        check: Check[TopicConfig] | None = None,
    ) -> bool:
        """Remove the settings of a topic; False if it has none (deleteTopicConfig).

        Its queues and messages stay: see storage.queue.deletion. Noted and checked as for
        ``update``.
        """
        self.check_changeable(topic)
        return self._table.remove(topic, note or {}, check)

    def check_changeable(self, topic: str) -> None:
        """Refuse to change an illegal name or one of the system's topics.

        Raises InvalidNameError and NoPermissionError.
        """
        check_changeable_topic(topic)
        if topic in self._table.system:
            raise NoPermissionError(f"topic {topic} belongs to the system and cannot be changed")

    def _check_settings(self, config: TopicConfig) -> None:
        """Refuse settings that no topic may have, and those of a topic that may not be changed."""
        topic = config.topic_name
        self.check_changeable(topic)
        for what, count in (("read", config.read_queue_nums), ("write", config.write_queue_nums)):
            if not 0 <= count <= MAX_QUEUES:
                raise BrokerSystemError(
                    f"topic {topic} cannot have {count} {what} queues (0 to {MAX_QUEUES})"
                )
        if not 0 <= config.perm <= _MAX_PERM:
            raise BrokerSystemError(
                f"perm {config.perm} of topic {topic} is not a sum of "
                "4 (read), 2 (write) and 1 (inherit)"
            )

    def _refuse_other_case(self, topic: str, names: Iterable[str]) -> None:
        """Refuse a new topic whose folder would be that of another one."""
        from storage.platform.names import folds_case  # few processes make a topic

        if not folds_case(self._log):
            return
        for name in (*names, *(name for name, _ in self._queues())):
            if name != topic and name.casefold() == topic.casefold():
                raise InvalidNameError(
                    f"topic {topic} differs from {name} only in case, which the file system of "
                    "this store does not tell apart; choose another name"
                )

    def _new_in_send(self, topic: str, default_topic: str, default_queue_nums: int) -> NewTopic:
        """Apply createTopicInSendMessageMethod, and its exception for retry topics."""
        created = self._like_default(topic, default_topic, default_queue_nums)
        if created is None and topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            created = TopicConfig(topic, 1, 1)
        if created is None:
            raise TopicNotExistError(f"topic {topic} does not exist; create it before sending")
        return NewTopic(*created)

    def _like_default(
        self, topic: str, default_topic: str, default_queue_nums: int
    ) -> TopicConfig | None:
        """Make the settings of a new topic from those of ``default_topic``; None: not allowed."""
        template = self._table.get(default_topic)
        if template is None or not template.inherited:
            return None
        automatic = self.config.auto_create_topic_enable
        if default_topic == AUTO_CREATE_TOPIC_KEY_TOPIC and not automatic:
            return None  # such a broker takes the inherit bit from TBW102
        queues = max(0, min(default_queue_nums, template.write_queue_nums))
        perm = template.perm & ~PERM_INHERIT
        return TopicConfig(topic, queues, queues, perm, template.topic_filter_type)


def _of_queues(topic: str, queue_ids: Iterable[int]) -> TopicConfig:
    """Make the settings of a topic that is known only from its queues: to be read, not written."""
    return TopicConfig(topic, queues_with(queue_ids), 0, PERM_READ)


def _with_queues(topic: TopicConfig, queue_nums: int) -> TopicConfig:
    """Make settings with at least ``queue_nums`` read and write queues."""
    read, write = topic.read_queue_nums, topic.write_queue_nums
    if min(read, write) >= queue_nums:
        return topic
    return topic._replace(
        read_queue_nums=max(read, queue_nums), write_queue_nums=max(write, queue_nums)
    )


def check_readable(topic: TopicConfig) -> None:
    """Raise NoPermissionError for a topic that consumers may not pull."""
    if not topic.readable:
        raise NoPermissionError(
            f"topic {topic.topic_name} may not be read: its perm is {topic.perm}, "
            f"read is {PERM_READ}"
        )
