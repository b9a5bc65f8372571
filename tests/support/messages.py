"""Messages as a pull would bring them, without a store."""

from __future__ import annotations

from collections.abc import Iterable

from storage.format.message import MessageExt


def pulled(offsets: Iterable[int], *, body: bytes = b"x", topic: str = "T") -> list[MessageExt]:
    """Messages of one queue, at these offsets."""
    return [
        MessageExt(topic, body, queue_offset=offset, commitlog_offset=offset * 100)
        for offset in offsets
    ]
