"""Checking topics.json against the queues that the store has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.configs.config_file import BAK_SUFFIX
from storage.configs.journal import Journal
from storage.configs.subscription_groups import SUBSCRIPTION_GROUP_FILE
from storage.configs.topics import TOPICS_FILE, TopicConfig, system_topics
from storage.errors import CorruptFileError
from storage.format.message import LMQ_PREFIX, SCHEDULE_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC
from storage.format.names import CONFIG, CONSUMEQUEUE
from storage.format.shapes import MAX_QUEUES

from .findings import Code, Finding, Severity

if TYPE_CHECKING:
    from storage.readonly import StoreView

Emit = Callable[[Finding], None]

_CREATABLE: Final = re.compile(r"(?!RMQ_SYS_|rmq_sys_)[%|a-zA-Z0-9_-]{1,127}")
_OF_SYSTEM: Final = frozenset(
    (*system_topics("DefaultCluster", ""), SCHEDULE_TOPIC, TRANS_CHECK_MAX_TIME_TOPIC)
)
_SYSTEM_PREFIXES: Final = ("RMQ_SYS_", "rmq_sys_")


def check_topics(view: StoreView, emit: Emit) -> None:
    """Check whether every queue's topic is known, and whether its groups read that queue."""
    queues: dict[str, set[int]] = {}
    for topic, queue_id in view.files.queue_folders():
        if not topic.startswith(LMQ_PREFIX):
            queues.setdefault(topic, set()).add(queue_id)
    try:
        topics = view.topics()
    except CorruptFileError:
        return  # reported with the settings
    if not topics:
        _check_lost(view.root, queues, emit)
        return
    for topic, queue_ids in sorted(queues.items()):
        config = topics.get(topic)
        if config is None:
            emit(_unknown(topic))
        elif topic != SCHEDULE_TOPIC:
            _check_read(view, config, queue_ids, emit)


def _check_lost(root: Path, queues: dict[str, set[int]], emit: Emit) -> None:
    """A bare message store has no topics.json at all; in a broker's store it is lost."""
    path = root / CONFIG / TOPICS_FILE
    if path.exists() or path.with_name(TOPICS_FILE + BAK_SUFFIX).exists():
        return  # reported with the settings if it should hold something
    count = sum(_is_of_users(topic) for topic in queues)
    if not count or not _had_settings(root):
        return
    have = "1 topic has" if count == 1 else f"{count} topics have"
    emit(
        Finding(
            Code.CONFIG_MISSING,
            Severity.WARNING,
            f"{CONFIG}/{TOPICS_FILE}",
            None,
            f"neither it nor its .bak is there, but {have} queues",
            "the next message to such a topic makes it anew, maybe with fewer queues than it had",
            "rmqctl store recover-config",
        )
    )


def _had_settings(root: Path) -> bool:
    """Whether the store had a writer that keeps topics in a file: a broker, which has groups beside
    it, or one that changed a topic's settings."""
    groups = root / CONFIG / SUBSCRIPTION_GROUP_FILE
    if groups.exists() or groups.with_name(groups.name + BAK_SUFFIX).exists():
        return True
    return any(_is_of_topics(entry) for entry in Journal(root).entries())


def _is_of_topics(entry: dict[str, Any]) -> bool:
    values = (entry.get("old"), entry.get("new"))
    named = any(isinstance(value, dict) and "topic_name" in value for value in values)
    return named or entry.get("what") == TOPICS_FILE


def _is_of_users(topic: str) -> bool:
    return topic not in _OF_SYSTEM and not topic.startswith(_SYSTEM_PREFIXES)


def _unknown(topic: str) -> Finding:
    return Finding(
        Code.TOPIC_UNKNOWN,
        Severity.INFO,
        f"{CONSUMEQUEUE}/{topic}",
        None,
        f"{topic} has queues but is not in topics.json",
        "clients of a Java broker cannot read it",
        f"rmqctl topic create {topic}" if may_be_named(topic) else "",
    )


def may_be_named(topic: str) -> bool:
    """Whether a user may create or alter it: no topic of the system, no name that brokers
    refuse."""
    return bool(_CREATABLE.fullmatch(topic)) and topic != SCHEDULE_TOPIC


def _check_read(view: StoreView, config: TopicConfig, queue_ids: set[int], emit: Emit) -> None:
    topic, read = config.topic_name, config.read_queue_nums
    left = {}
    for queue_id in sorted(queue_id for queue_id in queue_ids if queue_id >= read):
        bounds = view.queue_bounds(topic, queue_id)
        if bounds.max_offset > bounds.min_offset:
            left[queue_id] = bounds.max_offset - bounds.min_offset
    if not left:
        return
    first, last, count = min(left), max(left), sum(left.values())
    where = f"queue {first}" if first == last else f"queues {first} to {last}"
    messages = "1 message" if count == 1 else f"{count} messages"
    emit(
        Finding(
            Code.QUEUE_NOT_READ,
            Severity.INFO,
            f"{CONSUMEQUEUE}/{topic}",
            None,
            f"{messages} in {where} of {topic}, whose readQueueNums is {read}",
            "groups do not get what they have not read of these yet",
            f"rmqctl topic alter {topic} --read-queues {last + 1}"
            if last < MAX_QUEUES and may_be_named(topic)
            else "",
        )
    )
