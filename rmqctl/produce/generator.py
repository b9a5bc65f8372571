"""Bodies generated from a template: for tests, demonstrations and load."""

import time
import uuid
from collections.abc import Callable, Iterator
from datetime import tzinfo
from typing import Final

from rmqctl.parse.templates import Field, date_by, parse_template
from storage.parse.times import format_time

from .sources import Portion

GENERATED: Final = "itTBdm"
"""Fields of generated bodies: counter, topic, time in ms, formatted time, a new id."""


Writer = Callable[[int, int], bytes]
"""Builds the bytes of a field from the counter and the time in ms."""


def generated_portions(
    template: str,
    topic: str,
    count: int,
    portion: int,
    zone: tzinfo | None,
    wait: Callable[[int], int] = lambda wanted: wanted,
) -> Iterator[Portion]:
    """``count`` bodies of ``template``, at most ``portion`` at a time.

    ``wait`` returns how many of the wanted bodies are due, and may sleep until then: bodies are
    filled afterwards, so a time in them is the time of the send.

    ValueError names a field that cannot be generated.
    """
    return _generate(body_maker(template, topic, zone), count, portion, wait)


def body_maker(template: str, topic: str, zone: tzinfo | None) -> Callable[[int], bytes]:
    """A function of the counter, from 1, that makes a body with the present time.

    ValueError names a field that cannot be generated.
    """
    pieces = parse_template(template)
    writers = [p if isinstance(p, bytes) else _writer(p, topic, zone) for p in pieces]

    def make(number: int) -> bytes:
        now_ms = time.time_ns() // 1_000_000
        return b"".join([w if isinstance(w, bytes) else w(number, now_ms) for w in writers])

    return make


def _generate(
    make: Callable[[int], bytes], count: int, portion: int, wait: Callable[[int], int]
) -> Iterator[Portion]:
    end = 1
    while end <= count:
        lines = range(end, end + wait(min(portion, count + 1 - end)))
        end = lines.stop
        yield Portion([make(number) for number in lines], [], lines)


def _writer(field: Field, topic: str, zone: tzinfo | None) -> Writer:
    code, modifier = field
    if code not in GENERATED or (modifier and code != "d"):
        known = ", ".join(f"%{known}" for known in GENERATED)
        raise ValueError(f"%{code} cannot be generated (known: {known})")
    match code:
        case "i":
            return lambda number, now_ms: b"%d" % number
        case "t":
            return lambda number, now_ms: topic.encode()
        case "m":
            return lambda number, now_ms: uuid.uuid4().hex.upper().encode()
        case "d" if modifier:
            return lambda number, now_ms: date_by(modifier, now_ms, zone)
        case "d":
            return lambda number, now_ms: format_time(now_ms, zone, iso=True).encode()
        case _:
            return lambda number, now_ms: b"%d" % now_ms
