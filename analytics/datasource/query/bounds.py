"""Where reading begins and ends: ``startingOffset``, ``endingOffset`` and their times.

The forms are those of Kafka's source: a word, a number, a time, or JSON by broker, topic and queue.
A number is an offset of the log for a whole store, and a queue offset for a queue.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from analytics.report.scan import progress_of
from storage.clock import now_ms
from storage.parse.times import parse_time
from storage.read.log_offsets import first_at
from storage.readonly import Boundary, StoreView

from .errors import DataLossError, OptionError
from .topics import read_json

if TYPE_CHECKING:
    from analytics.report.stores import StoreRef

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
_GROUP: Final = "group:"
ANY: Final = "*"
_KAFKA: Final = {-2: EARLIEST, -1: LATEST}
_FORM: Final = '{"broker": {"topic": {"0": 23, "1": "latest"}}}, with "*" for any broker'


class Bound(NamedTuple):
    """Where queues are begun, or ended (the message there is not read)."""

    option: str
    value: Any
    """A word, a number, or a tree of them by broker, topic and queue."""
    is_time: bool = False
    """Numbers are store times (ms), not offsets."""
    group: str | None = None
    """The progress of a group says where."""

    @property
    def word(self) -> str | None:
        """``earliest`` or ``latest``, if that is all."""
        return self.value if isinstance(self.value, str) else None

    @property
    def log_offset(self) -> int | None:
        """An offset of the log, for all stores, if that is all."""
        return self.value if isinstance(self.value, int) and not self.is_time else None

    def named(self) -> set[tuple[str, str]]:
        """The brokers and topics that the tree names."""
        tree = self.value if isinstance(self.value, Mapping) else {}
        return {
            (broker, topic)
            for broker, topics in tree.items()
            for topic in (topics if isinstance(topics, Mapping) else ("",))
        }

    def named_queues(self) -> set[tuple[str, str, str]]:
        """The queues that the tree names: broker, topic and the text of the queue's number."""
        tree = self.value if isinstance(self.value, Mapping) else {}
        return {
            (broker, topic, number)
            for broker, topics in tree.items()
            if isinstance(topics, Mapping)
            for topic, numbers in topics.items()
            if isinstance(numbers, Mapping)
            for number in numbers
        }


Progress = Mapping[str, Mapping[int, int]]
"""The committed offsets of a group, by topic and queue."""

BEGIN: Final = Bound("startingOffset", EARLIEST)
END: Final = Bound("endingOffset", LATEST)


class QueueBound:
    """A bound in the queues of one store. Raises OptionError if no group of that name is known."""

    def __init__(
        self,
        bound: Bound,
        view: StoreView,
        ref: StoreRef,
        *,
        fail: bool,
        progress: Progress | None = None,
    ) -> None:
        """``progress`` of the bound's group; None: as the store has it now."""
        self._bound = bound
        self._view = view
        self._ref = ref
        self._fail = fail
        self._progress: Progress = progress or {}
        if bound.group is not None and progress is None:
            self._progress = of_group(view, bound.group)

    def reads(self, topic: str) -> bool:
        """Whether a topic is read: with a group's progress only those that the group reads."""
        return self._bound.group is None or topic in self._progress

    def offset(self, topic: str, queue_id: int, low: int, high: int, other: int) -> int:
        """The queue offset, in [low, high]; ``other`` where the option does not name the queue.

        Raises DataLossError for messages that are deleted, and OptionError past the end.
        """
        bound, view = self._bound, self._view
        if bound.group is not None:
            known = self._progress.get(topic, {})
            if queue_id not in known:
                return low  # it has read nothing there
            return self._checked(known[queue_id], topic, queue_id, low, high)
        leaf, is_log = _leaf(bound.value, self._ref.broker, topic, queue_id)
        if leaf is None:
            return other
        if isinstance(leaf, str):
            return low if leaf == EARLIEST else high
        if bound.is_time:
            return view.offset_in_queue_by_time(topic, queue_id, leaf, Boundary.LOWER)
        if is_log:
            if self._fail:
                check_still_there(self._ref.broker, bound.option, leaf, view.log_min_offset())
            return first_at(view, topic, queue_id, leaf, low, high)
        return self._checked(leaf, topic, queue_id, low, high)

    def _checked(self, at: int, topic: str, queue_id: int, low: int, high: int) -> int:
        where = f"{self._ref.broker}: queue {queue_id} of {topic}"
        option = self._bound.option
        if at > high:
            raise OptionError(f"{option}: {at} lies past the end of {where}, which is {high}")
        if at < low and self._fail:
            raise DataLossError(
                f"{where}: messages {at} to {low - 1} were deleted, and {option} is {at}; "
                "failOnDataLoss=false goes on after them"
            )
        return max(at, low)


def of_group(view: StoreView, group: str) -> Progress:
    """The progress of a group. Raises CorruptFileError and StoreVersionError."""
    return {topic: offsets for (one, topic), offsets in progress_of(view).items() if one == group}


def check_still_there(broker: str, option: str, at: int, log_begin: int) -> None:
    """Raise DataLossError if the log at the bound ``at`` of ``option`` was deleted; 0 is where a
    log begins, whatever was deleted."""
    if not 0 < at < log_begin:
        return
    if option == END.option:
        raise DataLossError(
            f"{broker}: the log up to {log_begin} was deleted, and {option} is {at}; "
            "failOnDataLoss=false reads nothing there"
        )
    raise DataLossError(
        f"{broker}: {log_begin - at} bytes of the log from {at} on were deleted, and "
        f"{option} is {at}; failOnDataLoss=false goes on after them"
    )


def read_bound(offset: str, timestamp: str, given: Mapping[str, str], usual: Bound) -> Bound:
    """Read a pair of options, of which one may be given. Raises OptionError."""
    if offset in given and timestamp in given:
        raise OptionError(f"{offset} and {timestamp}: give one of them")
    if timestamp in given:
        text, now = given[timestamp], now_ms()
        value = _tree(timestamp, text) if _is_tree(text) else text
        times = _map(value, lambda leaf, _: _time(timestamp, leaf, now))
        return Bound(timestamp, times, is_time=True)
    if offset not in given:
        return usual
    text = given[offset].strip()
    if text.startswith(_GROUP) and usual is BEGIN:
        name = text[len(_GROUP) :].strip()
        if not name:
            raise OptionError(f"{offset}: {text!r} names no group")
        return Bound(offset, None, group=name)
    if _is_tree(text):
        return Bound(offset, _map(_tree(offset, text), lambda *leaf: _offset(offset, *leaf)))
    if text.lower() in {EARLIEST, LATEST}:
        return Bound(offset, text.lower())
    if text.isascii() and text.isdigit():
        return Bound(offset, int(text))
    more = ", nor group:NAME" if usual is BEGIN else ""
    raise OptionError(
        f"{offset}: {text!r} is neither earliest nor latest, and not a number from 0 on, nor JSON"
        f"{more}"
    )


def _is_tree(text: str) -> bool:
    return text.lstrip().startswith("{")


def _tree(option: str, text: str) -> Any:
    found = read_json(option, text)
    if not found:
        raise OptionError(f"{option}: {text!r} has not the form {_FORM}")
    return found


def _map(value: Any, convert: Any, depth: int = 0) -> Any:
    if isinstance(value, dict) and depth < 3:
        return {key: _map(below, convert, depth + 1) for key, below in value.items()}
    return convert(value, depth)


def _offset(option: str, leaf: Any, depth: int) -> Any:
    if isinstance(leaf, str) and leaf.lower() in {EARLIEST, LATEST}:
        return leaf.lower()
    if type(leaf) is int and leaf in _KAFKA:
        return _KAFKA[leaf]
    if type(leaf) is int and leaf >= 0 and depth != 2:
        return leaf
    raise OptionError(f"{option}: {json.dumps(leaf)} is no offset there; the form is {_FORM}")


def _time(option: str, leaf: Any, now: int) -> int:
    """Milliseconds since 1970 of a time as the commands read it; without a zone it is in UTC."""
    if type(leaf) is int or isinstance(leaf, str):
        try:
            return parse_time(str(leaf), now, UTC)
        except ValueError as error:
            raise OptionError(f"{option}: {error}") from None
    raise OptionError(f"{option}: {json.dumps(leaf)} is not a time")


def _leaf(value: Any, broker: str, topic: str, queue_id: int) -> tuple[Any, bool]:
    """The value for a queue (None: not named), and whether it is one of a whole store.

    What is named for the broker itself comes first, then what is named for any.
    """
    if not isinstance(value, Mapping):
        return value, True
    for below in (value.get(broker), value.get(ANY)):
        if below is not None and not isinstance(below, Mapping):
            return below, True
        leaf = (below or {}).get(topic)
        if isinstance(leaf, Mapping):
            leaf = leaf.get(str(queue_id))
        if leaf is not None:
            return leaf, False
    return None, False
