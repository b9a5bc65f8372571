"""The bodies of a load. Each message carries when it was due, for the reader."""

from collections.abc import Callable
from datetime import tzinfo
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from storage.format.message import MessageExt

MEASURED: Final = b"M%019d"
"""The stamp of a measured message: when it was due, in ns of the system's monotonic clock."""
WARM_UP: Final = b"W%019d"
"""The stamp of a message of the warm-up."""
STAMP_BYTES: Final = 20
"""Bytes of a stamp."""
DUE_PROPERTY: Final = "BENCH_DUE"
"""The property with the stamp of a message whose body is a template's."""

Maker = Callable[[int, int, bytes], list[bytes]]
"""Makes bodies: of the number of the first one, from 1, how many there are, and their stamp."""


def sized_bodies(size: int) -> Maker:
    """Bodies of ``size`` bytes, at least STAMP_BYTES, that begin with the stamp."""
    rest = (b"0123456789abcdef" * (size // 16 + 1))[: size - STAMP_BYTES]
    return lambda first, count, stamp: [stamp + rest] * count


def template_bodies(template: str, topic: str, zone: tzinfo | None) -> Maker:
    """Bodies of a template of ``produce``; ValueError if it is malformed."""
    from rmqctl.produce.generator import body_maker

    make = body_maker(template, topic, zone)
    return lambda first, count, stamp: [make(number) for number in range(first, first + count)]


def due_of(message: "MessageExt") -> int | None:
    """When a measured message was due; None if that is unknown, or it is one of the warm-up."""
    stamp = message.body[:STAMP_BYTES]
    if len(stamp) < STAMP_BYTES or stamp[:1] not in (b"M", b"W") or not stamp[1:].isdigit():
        stamp = (message.properties or {}).get(DUE_PROPERTY, "").encode()
    if stamp[:1] != b"M" or not stamp[1:].isdigit():
        return None
    return int(stamp[1:])
