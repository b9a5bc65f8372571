"""The query of a search: bytes that lead to records, and a test for each record."""

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.known_topics import INNER_TOPICS, check_queues_exist
from rmqctl.admin.message_filter import EVERY_MESSAGE, MessageFilter, Predicate
from storage.format.sys_flag import MessageSysFlag
from storage.read.tag_filter import TagFilter

from .byte_search import SearchBytes
from .texts import DEFAULT_FIELDS, literal_of, texts_in

if TYPE_CHECKING:
    from storage.configs.deleted_topics import DeletedTopics
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_HOUR_MS: Final = 3_600_000


class Plain(NamedTuple):
    """Where and when messages lie."""

    topics: frozenset[str] | None
    """None: all but ``others``."""
    others: frozenset[str]
    queues: "Container[int] | None"
    from_timestamp: int | None
    to_timestamp: int | None
    deleted: "DeletedTopics | None" = None
    """Topics that were deleted, each with the log offset before which its records do not count."""


class Query(NamedTuple):
    """One search. ``needle`` None: every record has to be tested."""

    needle: SearchBytes | None
    matches: Predicate
    from_timestamp: int | None
    to_timestamp: int | None
    plain: "Plain | None" = None
    """Says the same as ``matches`` if that tests no more than where and when a message lies."""

    def may_be_in_file(self, first_timestamp: int, next_timestamp: int | None) -> bool:
        """Whether a log file between two store times can contain a hit.

        Store times increase except for steps of the broker's clock; steps of up to an hour are
        allowed for.
        """
        start, end = self.from_timestamp, self.to_timestamp
        if end is not None and first_timestamp - _HOUR_MS >= end:
            return False
        return start is None or next_timestamp is None or next_timestamp + _HOUR_MS >= start


class Contains(NamedTuple):
    """What every message that a filter selects contains: the search looks for these bytes first.

    This only makes the search faster; the filter still tests each message.
    """

    body: str | None = None
    """A text in the body."""
    key: str | None = None
    regex: str | None = None
    """A regular expression that matches in the searched fields."""
    properties: Sequence[str] = ()
    """``NAME``, or ``NAME=GLOB``."""


def search_query(
    view: "StoreView",
    pattern: str | None = None,
    *,
    topics: Sequence[str] | None = None,
    fields: Sequence[str] = DEFAULT_FIELDS,
    wanted: MessageFilter = EVERY_MESSAGE,
    contains: Contains = Contains(),  # noqa: B008 - a tuple
    inner_topics: bool = True,
) -> Query:
    """The search for messages that contain ``pattern`` in one of ``fields``, and that a filter
    selects.

    The fields are body, tags, keys and properties (the values of all, including tags and keys).
    ``topics`` None: all, without ``inner_topics`` those that users send to. The predicate of
    ``wanted`` tests tags, too; ``wanted.tags`` only makes the search faster. NotFound for an
    unknown topic, and for a queue that none of ``topics`` has; ValueError for an empty pattern.
    """
    if pattern == "":
        raise ValueError("the pattern is empty")
    check_queues_exist(view, topics, wanted.queues)
    tests: list[Predicate] = []
    if topics is not None:
        wanted_topics = frozenset(topics)
        tests.append(lambda message: message.topic in wanted_topics)
    elif not inner_topics:
        tests.append(lambda message: message.topic not in INNER_TOPICS)
    if (queues := wanted.queues) is not None:
        tests.append(lambda message: message.queue_id in queues)
    if (start := wanted.from_timestamp) is not None:
        tests.append(lambda message: message.store_timestamp >= start)
    if (end := wanted.to_timestamp) is not None:
        tests.append(lambda message: message.store_timestamp < end)
    if wanted.predicate is not None:
        tests.append(wanted.predicate)
    if pattern is not None:
        tests.append(_containing(_bytes(pattern), fields))
    needle = _needle(view, pattern, topics, fields, wanted.tags, contains)
    plain = None
    if wanted.predicate is None and pattern is None:
        others = frozenset() if inner_topics else INNER_TOPICS
        plain = Plain(
            None if topics is None else frozenset(topics), others, wanted.queues, start, end
        )
    return Query(needle, _all_of(tests), start, end, plain)


def _containing(text: bytes, fields: Sequence[str]) -> Predicate:
    """Whether a text is in one of the fields. A body that is not compressed is looked at first: it
    needs nothing but its bytes."""
    texts, in_body = texts_in(fields), "body" in fields
    compressed = MessageSysFlag.COMPRESSED_FLAG

    def matches(message: "MessageExt") -> bool:
        if in_body and text in message.stored_body and not message.sys_flag & compressed:
            return True
        return any(text in stored for stored in texts(message))

    return matches


def _all_of(tests: list[Predicate]) -> Predicate:
    if len(tests) == 1:
        return tests[0]

    def matches(message: "MessageExt") -> bool:
        return all(test(message) for test in tests)

    return matches


def _needle(
    view: "StoreView",
    pattern: str | None,
    topics: Sequence[str] | None,
    fields: Sequence[str],
    tag: str | None,
    contains: Contains,
) -> SearchBytes | None:
    """The best bytes to search for: those that are likely to be rare come first."""
    in_body = "body" in fields
    if pattern is not None:
        return SearchBytes((_bytes(pattern),), in_body)
    if contains.body:
        return SearchBytes((_bytes(contains.body),), True)
    if contains.key:
        return SearchBytes((_bytes(contains.key),), False)
    if contains.regex is not None and (literal := literal_of(contains.regex)) is not None:
        return SearchBytes((literal,), in_body)
    for text in contains.properties:
        name, _, value = text.partition("=")
        plain = value if value and not set(value) & set("*?[") else ""
        return SearchBytes((_bytes(f"{name}\x01{plain}"),), False)
    if tag is not None and (tags := TagFilter.parse(tag)) is not None:
        return SearchBytes(tuple(b"TAGS\x01" + _bytes(tag) for tag in tags.tags), False)
    if topics is not None and _are_rare(view, topics):
        stored = map(_bytes, topics)
        return SearchBytes(tuple(bytes((len(name) & 0xFF,)) + name for name in stored), False)
    return None


def _are_rare(view: "StoreView", topics: Sequence[str]) -> bool:
    """Whether a search for the names of topics costs less than reading every record."""
    counts = {True: 0, False: 0}
    for topic, queue_id in view.queues():
        low, high = view.queue_bounds(topic, queue_id)
        counts[topic in topics] += high - low
    return counts[True] * 4 < counts[False]


def _bytes(text: str) -> bytes:
    """A text as stored."""
    return text.encode("utf-8", "surrogateescape")
