"""Sending stored messages with the times between them: ``--speed``."""

import time
from collections.abc import Callable, Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING, Final

from storage.parse.times import parse_time

from .rate_limit import sleep_until
from .sender import InvalidRecordError
from .sources import Portion

if TYPE_CHECKING:
    from .parsers import Outgoing

_TICK_S: Final = 0.001
"""Messages that are due within a tick go out together."""


def parse_speed(text: str) -> float:
    """``0.5`` or ``2x``: how many times as fast as they were stored; ValueError for others."""
    try:
        speed = float(text.strip().removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise ValueError(f"{text!r} is not a speed (such as 0.5, half as fast, or 2x)")
    return speed


def replayed(
    portions: Iterator[Portion],
    speed: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    *,
    zone: tzinfo | None = None,
) -> Iterator[Portion]:
    """The portions, each message not before its time; the first one is due now.

    A message is due ``(its store time - that of the first) / speed`` after the first one, so the
    errors of single waits do not add up. A late start of one message does not make later ones late.
    A message whose record has no store time is the invalid one of its portion. ``zone`` is that of
    times without one.
    """
    first: int | None = None
    start = clock()
    for portion in portions:
        begin = 0
        for at, message in enumerate(portion.messages):
            try:
                stored = _stored_at(message.store_timestamp, zone)
            except ValueError as error:
                invalid = InvalidRecordError(portion.lines[at], str(error))
                yield _part(portion, begin, at, invalid)
                begin = at + 1
                continue
            if first is None:
                first, start = stored, clock()
            due = start + (stored - first) / 1000 / speed
            if due - clock() > _TICK_S:
                if begin < at:
                    yield _part(portion, begin, at)
                    begin = at
                sleep_until(due, clock, sleep)
        yield portion._replace(messages=portion.messages[begin:], lines=portion.lines[begin:])


def _stored_at(given: object, zone: tzinfo | None) -> int:
    """The store time of a record in ms; ValueError if it is none."""
    if given is None or given == "":
        raise ValueError("has no store_timestamp, which --speed needs")
    if type(given) is not int and not isinstance(given, str):
        raise ValueError(f"its store_timestamp is {given!r}, not a time")
    try:
        moment = parse_time(str(given), 0, zone)
    except ValueError as error:
        raise ValueError(f"its store_timestamp {error}") from None
    if not moment:
        raise ValueError(f"its store_timestamp is {given!r}: no message is that old")
    return moment


def _part(
    portion: Portion, begin: int, end: int, invalid: InvalidRecordError | None = None
) -> Portion:
    messages: list[Outgoing] = portion.messages[begin:end]
    return Portion(None, messages, portion.lines[begin:end], invalid)
