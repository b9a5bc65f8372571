"""All messages with a key, from the index and from parts of the log that it does not cover."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.admin.changes import Warn, no_warning
from rmqctl.admin.known_topics import all_topics
from rmqctl.admin.scan_progress import OnProgress, no_progress
from rmqctl.errors import UsageProblem
from storage.read.by_key import carries_key
from storage.read.replaced import is_tombstone
from storage.readonly import FOREVER

from .byte_search import SearchBytes
from .deleted import deleted_in_log, is_deleted
from .query import Query
from .run import Search

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_SECOND_MS: Final = 1000


class Look(Enum):
    """Where a key is searched."""

    EVERYWHERE = auto()
    """The index, and the parts of the log that it does not cover."""
    INDEX = auto()
    """The index only: what a broker would find."""
    SCAN = auto()
    """The whole log, without the index."""


class KeyHits(NamedTuple):
    """Log offsets, ascending, of messages with a key, and of damaged records."""

    offsets: list[int]
    damaged: list[int]


def find_key(
    view: "StoreView",
    key: str,
    topics: Sequence[str] | None,
    look: Look = Look.EVERYWHERE,
    begin: int = 0,
    end: int = FOREVER,
    *,
    jobs: int | None = None,
    on_progress: OnProgress = no_progress,
) -> KeyHits:
    """Find the messages with a key, or a unique id, in some topics or in all (None).

    Stored at ``begin`` or later and before ``end`` (ms); without those that were deleted with their
    topic. UsageProblem for an empty key.
    """
    if not key:
        raise UsageProblem("the id or key is empty; give the id or a key of a message")
    offsets: set[int] = set()
    damaged: set[int] = set()
    if look is not Look.SCAN:
        low, deleted = view.log_min_offset(), deleted_in_log(view)
        for topic in all_topics(view) if topics is None else topics:
            for offset in view.key_offsets(topic, key, max(0, begin - _SECOND_MS), end):
                message = view.look_message_by_offset(offset)
                if message is None:
                    if offset >= low and not is_tombstone(view, offset):
                        damaged.add(offset)
                elif is_deleted(message, deleted):
                    continue
                elif carries_key(message, topic, key) and begin <= message.store_timestamp < end:
                    offsets.add(offset)
    if look is not Look.INDEX:
        ranges = None if look is Look.SCAN else view.not_indexed()
        query = _key_query(key, topics, begin, end)
        search = Search(view, query, ranges=ranges, jobs=jobs, on_progress=on_progress)
        with closing(search.parts()) as parts:
            for part in parts:
                offsets.update(part.hits)
        damaged.update(search.damaged)
    return KeyHits(sorted(offsets), sorted(damaged - offsets))


def read_messages(
    view: "StoreView", offsets: Iterable[int], left_out: Warn = no_warning
) -> "Generator[MessageExt]":
    """The messages at log offsets; says at the end how many of them cannot be read.

    That is also where it is closed before: so many of those up to there.
    """
    lost = 0
    try:
        for offset in offsets:
            message = view.look_message_by_offset(offset)
            if message is not None:
                yield message
            elif offset >= view.log_min_offset():  # not deleted in the meantime
                lost += not is_tombstone(view, offset)
    finally:
        if lost:
            left_out(f"left out {lost} damaged records; 'rmqctl store fsck' shows them")


def _key_query(key: str, topics: Sequence[str] | None, begin: int, end: int) -> Query:
    data = key.encode("utf-8", "surrogateescape")

    def matches(message: "MessageExt") -> bool:
        return (
            begin <= message.store_timestamp < end
            and (topics is None or message.topic in topics)
            and carries_key(message, message.topic, key)
        )

    needle = SearchBytes((data,), False)
    first = begin or None
    return Query(needle, matches, first, end if end < FOREVER else None)
