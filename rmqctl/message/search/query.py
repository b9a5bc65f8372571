"""The query of a search: bytes that lead to records, and a test for each record."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from rmqctl.admin.known_topics import INNER_TOPICS, check_topic_exists
from rmqctl.admin.message_filter import Predicate
from rmqctl.admin.messages.search.byte_search import SearchBytes
from rmqctl.admin.messages.search.texts import literal_of, parse_fields, texts_in
from rmqctl.cli.filter_options import FILTERS, message_filter
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_HOUR_MS: Final = 3_600_000


class Query(NamedTuple):
    """One search. ``needle`` None: every record has to be tested."""

    needle: SearchBytes | None
    matches: Predicate
    from_timestamp: int | None
    to_timestamp: int | None
    fingerprint: int
    """Identifies the search: a resume token belongs to one search."""

    def may_be_in_file(self, first_timestamp: int, next_timestamp: int | None) -> bool:
        """Whether a log file between two store times can contain a hit.

        Store times increase except for steps of the broker's clock; steps of up to an hour are
        allowed for.
        """
        start, end = self.from_timestamp, self.to_timestamp
        if end is not None and first_timestamp - _HOUR_MS >= end:
            return False
        return start is None or next_timestamp is None or next_timestamp + _HOUR_MS >= start


def build_query(
    cli: "Cli",
    view: "StoreView",
    pattern: str | None,
    topics: Sequence[str] | None,
    fields: str | None,
    *,
    needs_filter: bool = True,
) -> Query:
    """The search of a call. UsageProblem for malformed values, NotFound for an unknown topic.

    ``needs_filter``: a pattern or filter is required. Without topics, all topics are searched
    except the broker's internal ones.
    """
    given = cli.given
    if pattern == "":
        raise UsageProblem("PATTERN is empty")
    filters = [name for spec in FILTERS if (name := spec.names[-1][2:].replace("-", "_")) in given]
    if needs_filter and pattern is None and not filters:
        raise UsageProblem("give a PATTERN, or a filter such as --regex or --tag")
    for topic in topics or ():
        check_topic_exists(view, topic)
    names = ("body", "properties") if fields is None else cli.parsed("--in", parse_fields, fields)
    texts = texts_in(names)
    chosen = message_filter(cli, regex_in=texts)
    tests: list[Predicate] = []
    if topics is not None:
        wanted_topics = frozenset(topics)
        tests.append(lambda message: message.topic in wanted_topics)
    elif not needs_filter:
        tests.append(lambda message: message.topic not in INNER_TOPICS)
    if (queues := chosen.queues) is not None:
        tests.append(lambda message: message.queue_id in queues)
    if (start := chosen.from_timestamp) is not None:
        tests.append(lambda message: message.store_timestamp >= start)
    if (end := chosen.to_timestamp) is not None:
        tests.append(lambda message: message.store_timestamp < end)
    if chosen.predicate is not None:
        tests.append(chosen.predicate)
    if pattern is not None:
        wanted = pattern.encode("utf-8", "surrogateescape")
        tests.append(lambda message: any(wanted in text for text in texts(message)))
    asked = [pattern, topics, names, *((name, str(given[name])) for name in filters)]
    return Query(
        _needle(view, given, pattern, topics, names),
        _all_of(tests),
        start,
        end,
        crc32(repr(asked).encode("utf-8", "surrogateescape")),
    )


def _all_of(tests: list[Predicate]) -> Predicate:
    if len(tests) == 1:
        return tests[0]

    def matches(message: "MessageExt") -> bool:
        return all(test(message) for test in tests)

    return matches


def _needle(
    view: "StoreView",
    given: dict[str, Any],
    pattern: str | None,
    topics: Sequence[str] | None,
    fields: tuple[str, ...],
) -> SearchBytes | None:
    """The best bytes to search for: those that are likely to be rare come first."""
    in_body = "body" in fields
    if pattern is not None:
        return _one_needle(pattern.encode("utf-8", "surrogateescape"), in_body=in_body)
    if text := given.get("body"):
        return _one_needle(text.encode("utf-8", "surrogateescape"), in_body=True)
    if key := given.get("key"):
        return _one_needle(key.encode("utf-8", "surrogateescape"), in_body=False)
    if (regex := given.get("regex")) is not None and (literal := literal_of(regex)) is not None:
        return _one_needle(literal, in_body=in_body)
    for text in given.get("property", ()):
        name, _, value = text.partition("=")
        plain = value if value and not set(value) & set("*?[") else ""
        return _one_needle(f"{name}\x01{plain}".encode("utf-8", "surrogateescape"), in_body=False)
    if (tag := given.get("tag")) is not None:
        from storage.read.tag_filter import TagFilter

        tags = TagFilter.parse(tag)
        if tags is not None:
            needles = [b"TAGS\x01" + tag.encode("utf-8", "surrogateescape") for tag in tags.tags]
            return SearchBytes(tuple(needles), False)
    if topics is not None and _are_rare(view, topics):
        stored = [name.encode("utf-8", "surrogateescape") for name in topics]
        needles = [bytes((len(name) & 0xFF,)) + name for name in stored]
        return SearchBytes(tuple(needles), False)
    return None


def _are_rare(view: "StoreView", topics: Sequence[str]) -> bool:
    """Whether a search for the names of topics costs less than reading every record."""
    counts = {True: 0, False: 0}
    for topic, queue_id in view.queues():
        low, high = view.queue_bounds(topic, queue_id)
        counts[topic in topics] += high - low
    return counts[True] * 4 < counts[False]


def _one_needle(data: bytes, *, in_body: bool) -> SearchBytes:
    return SearchBytes((data,), in_body)
