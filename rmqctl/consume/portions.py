"""Messages that are printed together: so many that their inflated bodies are not too large."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rmqctl.output.row_block import RowBlock
from storage.format.compress import most_inflated

_INFLATED_BYTES: Final = 16 << 20
"""Bytes that the bodies of one portion may inflate to; a single body may have more."""


def portions(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Cut messages; bodies alone and rows are inflated already."""
    if type(items) is RowBlock:
        yield items
        return
    begin, room = 0, _INFLATED_BYTES
    for at, item in enumerate(items):
        if item is None or isinstance(item, bytes):
            continue
        most = most_inflated(len(item.stored_body), item.sys_flag)
        if most > room and begin < at:
            yield items[begin:at]
            begin, room = at, _INFLATED_BYTES
        room -= most
    if begin < len(items):
        yield items[begin:]
