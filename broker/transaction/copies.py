"""Half messages that a killed checker has stored again already.

A check stores a half message again and then notes its position. Killed between the two, it leaves
both copies: the next round would store the first one again and ask about both, and the transaction
could be committed twice. So a round that does not begin where one of this process has ended first
reads all half messages before it. Copies of one transaction have the same unique id: the last one
counts, the others are passed over, and an end of one of them ends all. Without an id, a copy is the
next message of the same content with one check more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from storage.format.message import (
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
)

from .ops import HALF_QUEUE

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_BATCH: Final = 32
_OF_CHECKS: Final = (PROPERTY_TRANSACTION_CHECK_TIMES, PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET)

Key = tuple[object, ...]


class HalfCopies:
    """The half messages from ``first`` on, by transaction. Reads them once.

    ``wanted`` False: nothing is read, and no message counts as a copy.
    """

    def __init__(self, view: StoreView, first: int, *, wanted: bool) -> None:
        self._view = view
        self._last: dict[int, int] = {}
        """The last half message of a transaction, by each other one of it."""
        self._others: dict[int, list[int]] = {}
        self._wanted = wanted
        self._begins: int | None = None
        self._aside: set[Key] | None = None
        if wanted:
            self._look(first)

    def is_followed(self, offset: int) -> bool:
        """Return whether a half message has been stored again."""
        return offset in self._last

    def others(self, offset: int) -> list[int]:
        """Give the earlier half messages of the transaction of a last one."""
        return self._others.get(offset, [])

    def is_aside(self, half: MessageExt) -> bool:
        """Return whether a half message is in TRANS_CHECK_MAX_TIME_TOPIC already."""
        if not self._wanted:
            return False
        if self._aside is None:
            begins = self._begins or 0
            self._aside = {
                _key(message)
                for message in _messages(self._view, TRANS_CHECK_MAX_TIME_TOPIC, 0)
                if message.commitlog_offset > begins
            }
        return _key(half) in self._aside

    def _look(self, first: int) -> None:
        newest: dict[Key, int] = {}
        followed_by: dict[int, int] = {}
        waiting: dict[Key, deque[int]] = {}  # without an id: by content and number of checks
        for half in _messages(self._view, TRANS_HALF_TOPIC, first):
            offset = half.queue_offset
            if self._begins is None:
                self._begins = half.commitlog_offset
            key = _key(half)
            if half.get_property(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX):
                before = newest.get(key)
                newest[key] = offset
            else:
                times = _times(half)
                earlier = waiting.get((*key, times - 1))
                before = earlier.popleft() if earlier else None
                waiting.setdefault((*key, times), deque()).append(offset)
            if before is not None:
                followed_by[before] = offset
        for offset in sorted(followed_by, reverse=True):
            following = followed_by[offset]
            last = self._last[offset] = self._last.get(following, following)
            self._others.setdefault(last, []).append(offset)


def _messages(view: StoreView, topic: str, first: int) -> Iterator[MessageExt]:
    """All messages of a queue that can be read, from an offset on."""
    low, end = view.queue_bounds(topic, HALF_QUEUE)
    at = max(low, first)
    while at < end:
        found = view.get_message(topic, HALF_QUEUE, at, _BATCH)
        yield from found.messages
        at = max(at + 1, found.next_begin_offset)


def _key(half: MessageExt) -> Key:
    properties = half.properties
    unique_id = properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    if unique_id:
        group, topic = (properties.get(n) for n in (PROPERTY_PRODUCER_GROUP, PROPERTY_REAL_TOPIC))
        return unique_id, group, topic, half.born_timestamp
    content = frozenset((n, properties[n]) for n in properties if n not in _OF_CHECKS)
    return content, half.stored_body, half.born_timestamp


def _times(half: MessageExt) -> int:
    text = half.get_property(PROPERTY_TRANSACTION_CHECK_TIMES) or "0"
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
