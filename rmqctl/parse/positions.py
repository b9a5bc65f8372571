"""Positions in a queue: the language of ``--offset``.

========== ============================================================================
``start``  the first stored message
``end``    after the last message as of now
``stored`` the group's progress
``n``      from queue offset n on; ``n:`` is the same
``:m``     from the start up to before m; ``n:m`` from n up to before m
``:end``   from the start (or ``n:end`` from n) to the end as of now
``+n``     n after the start; ``-n`` n before the end
``@t``     the first message stored at or after t; ``@t1:t2`` up to before t2
``s@t``    kcat's start time; ``e@t`` kcat's end time (exclusive)
========== ============================================================================
"""

import re
from datetime import tzinfo
from enum import StrEnum
from typing import NamedTuple

from storage.parse.times import DoubtfulTimeError, parse_time


class Bound(StrEnum):
    """The meaning of the number of a :class:`Point`."""

    START = "START"
    """``value`` messages after the first stored one."""
    END = "END"
    """``value`` messages before the current end."""
    STORED = "STORED"
    """The group's progress; ``value`` is 0."""
    OFFSET = "OFFSET"
    """Queue offset ``value``."""
    TIME = "TIME"
    """The first message stored at or after ``value`` (epoch milliseconds)."""


class Point(NamedTuple):
    """One end of a range in a queue."""

    bound: Bound
    value: int = 0


class Position(NamedTuple):
    """A range: ``begin`` is inclusive, ``end`` is exclusive; None leaves it to the command."""

    begin: Point | None
    end: Point | None


START = Point(Bound.START)
END = Point(Bound.END)


def parse_position(text: str, now_ms: int, zone: tzinfo | None = None) -> Position:
    """The range of ``text``; times are parsed by :func:`parse_time`."""
    stripped = text.strip()
    named = {
        "start": Position(START, None),
        "beginning": Position(START, None),
        "end": Position(END, None),
        "stored": Position(Point(Bound.STORED), None),
    }.get(stripped)
    if named:
        return named
    if stripped[:2] == "s@":
        return Position(_time(stripped[2:], now_ms, zone), None)
    if stripped[:2] == "e@":
        return Position(None, _time(stripped[2:], now_ms, zone))
    if stripped[:1] == "@":
        return _times(stripped[1:], now_ms, zone)
    if re.fullmatch(r"\+\d+", stripped, re.ASCII):
        return Position(Point(Bound.START, int(stripped)), None)
    if re.fullmatch(r"-\d+", stripped, re.ASCII):
        return Position(Point(Bound.END, -int(stripped)), None)
    found = re.fullmatch(r"(\d*)(?::(\d*|end))?", stripped, re.ASCII)
    if not found or stripped in {"", ":"}:
        raise ValueError(
            f"{text!r} is not a position (such as start, end, stored, 5, 5:9, :end, +10, -10, @-1h)"
        )
    begin = Point(Bound.OFFSET, int(found[1])) if found[1] else START
    if not found[2]:
        return Position(begin, None)
    if found[2] == "end":
        return Position(begin, END)
    if int(found[2]) < begin.value:
        raise ValueError(f"{text!r} is not a position: it ends before it begins")
    return Position(begin, Point(Bound.OFFSET, int(found[2])))


def _time(text: str, now_ms: int, zone: tzinfo | None) -> Point:
    return Point(Bound.TIME, parse_time(text, now_ms, zone))


def _times(text: str, now_ms: int, zone: tzinfo | None) -> Position:
    """Parse ``t``, ``t:``, ``:t`` or ``t1:t2``; times contain colons, too, so each one is tried."""
    if text == "":
        raise ValueError("'@' needs a time, such as @-1h or @2026-01-31T10:00")
    try:
        return Position(_time(text, now_ms, zone), None)
    except DoubtfulTimeError:
        raise
    except ValueError as error:
        if ":" not in text:
            raise ValueError(f"'@{text}': {error}") from None
    readings: list[Position] = []
    doubt: DoubtfulTimeError | None = None
    for at, letter in enumerate(text):
        if letter != ":":
            continue
        left, right = text[:at], text[at + 1 :]
        try:
            begin = _time(left, now_ms, zone) if left else START
            end = END if right == "end" else _time(right, now_ms, zone) if right else None
        except DoubtfulTimeError as error:
            doubt = error
            continue
        except ValueError:
            continue
        readings.append(Position(begin, end))
    if len(readings) > 1:  # one that goes back is not meant: 09:30:10:00 is not 09:30:10 to 0
        readings = [one for one in readings if not _goes_back(one)] or readings
    if len(readings) == 1:
        position = readings[0]
        if position.end and position.end.value and _goes_back(position):
            raise ValueError(f"'@{text}' is not a position: it ends before it begins")
        return position
    if doubt is not None:
        raise doubt
    if readings:
        raise ValueError(f"'@{text}' is ambiguous; give --from and --to instead")
    raise ValueError(
        f"'@{text}' is neither a time nor two times with a colon in between (such as @-1h:-5m)"
    )


def _goes_back(position: Position) -> bool:
    """Whether a range of times ends before it begins."""
    begin, end = position.begin or START, position.end
    return end is not None and end.bound is Bound.TIME and end.value < begin.value
