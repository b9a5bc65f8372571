"""The topics and queues that the options select: ``topics``, ``topicsPattern`` or ``queues``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from storage.format.errors import JsonError
from storage.format.message import (
    AUTO_CREATE_TOPIC_KEY_TOPIC,
    BENCHMARK_TOPIC,
    OFFSET_MOVED_EVENT,
    SELF_TEST_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
)
from storage.format.strict_json import loads_strict
from storage.parse.patterns import match_text

from .errors import OptionError

SYSTEM: Final = ("%RETRY%", "%DLQ%", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_", "rmq_sys_")
"""How most of RocketMQ's own topics begin."""
_OTHERS: Final = frozenset(
    {
        AUTO_CREATE_TOPIC_KEY_TOPIC,
        BENCHMARK_TOPIC,
        OFFSET_MOVED_EVENT,
        SELF_TEST_TOPIC,
        TRANS_CHECK_MAX_TIME_TOPIC,
    }
)
"""The others of its own."""
_FORMS: Final = '{"topic": [0, 1]}, or {"broker": {"topic": [0, 1]}}'


class TopicChoice(NamedTuple):
    """One of three choices; none of them selects all topics but RocketMQ's own."""

    names: frozenset[str] | None = None
    pattern: str | None = None
    """A regular expression of RE2."""
    queues: Mapping[str | None, Mapping[str, frozenset[int]]] | None = None
    """By broker (None: any), then by topic."""

    def wants(self, broker: str, topic: str, queue_id: int) -> bool:
        """Whether a queue is selected. RocketMQ's own topics are only if they are named, or if the
        pattern begins as they do."""
        if self.queues is not None:
            return any(
                queue_id in self.queues.get(key, {}).get(topic, ()) for key in (broker, None)
            )
        if self.names is not None:
            return topic in self.names
        own = own_beginning(topic)
        if self.pattern is None:
            return own is None
        return (own is None or self.pattern.startswith(own)) and match_text(self.pattern)(topic)

    @property
    def selects_some(self) -> bool:
        """Whether topics are left out, but for RocketMQ's own."""
        return self != TopicChoice()

    @property
    def named(self) -> Collection[str] | None:
        """The topics that are named one by one; None if they are not."""
        if self.queues is not None:
            return {topic for topics in self.queues.values() for topic in topics}
        return self.names


def own_beginning(topic: str) -> str | None:
    """How a topic of RocketMQ's own begins, if others begin alike, else its name; None for another
    topic."""
    found = next((prefix for prefix in SYSTEM if topic.startswith(prefix)), None)
    return topic if topic in _OTHERS else found


def read_topics(given: Mapping[str, str]) -> TopicChoice:
    """Read the three options. Raises OptionError."""
    some = [name for name in ("topics", "topicsPattern", "queues") if name in given]
    if len(some) > 1:
        raise OptionError(f"{' and '.join(some)}: give one of them, each selects topics by itself")
    if "topics" in given:
        return TopicChoice(names=read_names("topics", given["topics"]))
    if "topicsPattern" in given:
        text = given["topicsPattern"]
        try:
            match_text(text)
        except ValueError as error:
            raise OptionError(f"topicsPattern: {error}") from None
        return TopicChoice(pattern=text)
    if "queues" in given:
        return TopicChoice(queues=_queues(given["queues"]))
    return TopicChoice()


def read_names(name: str, text: str) -> frozenset[str]:
    """Read names with commas between. Raises OptionError if there is none."""
    found = frozenset(split_names(text))
    if not found:
        raise OptionError(f"{name}: {text!r} names none")
    return found


def split_names(text: str) -> list[str]:
    """Split a text at commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def read_json(option: str, text: str) -> Any:
    """Read the JSON of an option. Raises OptionError, also for a name that comes twice."""
    try:
        return loads_strict(text)
    except JsonError as error:
        raise OptionError(f"{option}: {text!r} is no JSON: {error.reason}") from None


def _queues(text: str) -> dict[str | None, dict[str, frozenset[int]]]:
    tree = read_json("queues", text)
    found: dict[str | None, dict[str, frozenset[int]]] = {}
    if isinstance(tree, dict) and tree:
        for key, value in tree.items():
            topics = {key: value} if isinstance(value, list) else value
            broker = None if isinstance(value, list) else key
            if not (isinstance(topics, dict) and topics and all(map(_are_ids, topics.values()))):
                break
            more = {topic: frozenset(ids) for topic, ids in topics.items()}
            found[broker] = {**found.get(broker, {}), **more}
        else:
            return found
    raise OptionError(f"queues: {text!r} has not the form {_FORMS}")


def _are_ids(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(one) is int and one >= 0 for one in value)
    )
