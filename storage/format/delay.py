"""The table of delay levels (``messageDelayLevel``, ScheduleMessageService.parseDelayLevel)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

DEFAULT_DELAY_LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
UNKNOWN_LEVEL_DELAY_MS: Final = 1000
"""Delay of a level that the table does not have (computeDeliverTimestamp)."""
CLOCK_STEP_MS: Final = 1_000
"""Store times never go back when the clock does; a message so little ahead of it is not early."""

_MOST_DIGITS: Final = 5
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_delay_levels(text: str = DEFAULT_DELAY_LEVELS) -> tuple[int, ...]:
    """Read a table as delays in ms; level n is item n - 1. ValueError names a bad item."""
    delays = []
    for item in text.split(" "):
        number, unit = item[:-1], item[-1:]
        is_number = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
        if not is_number or unit not in _UNIT_MS:
            raise ValueError(
                f"messageDelayLevel: {item!r} is not a number followed by s, m, h or d"
            )
        delays.append(int(number) * _UNIT_MS[unit])
    return tuple(delays)


def capped_level(level: int, delays_ms: Sequence[int]) -> int:
    """Cap a level to the table's last one, as CommitLog does before it stores a message."""
    return min(level, len(delays_ms))


def delay_ms(level: int, delays_ms: Sequence[int]) -> int:
    """Give the delay of a level (1-based); levels the table does not have wait one second."""
    if 1 <= level <= len(delays_ms):
        return delays_ms[level - 1]
    return UNKNOWN_LEVEL_DELAY_MS
