"""Messages that are printed together: so many that their inflated bodies are not too large."""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from rmqctl.output.row_block import RowBlock, RowText
from storage.format.compress import most_inflated
from storage.format.sys_flag import MessageSysFlag

_INFLATED_BYTES: Final = 16 << 20
"""Bytes that the bodies of one portion may inflate to; a single body may have more."""
_INFLATED: Final = {bytes, RowText, type(None)}
_SYS_FLAG: Final = attrgetter("sys_flag")


def portions(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Cut messages; bodies alone and rows are inflated already."""
    if _is_one(items):
        if items:
            yield items
        return
    begin, room = 0, _INFLATED_BYTES
    for at, item in enumerate(items):
        if type(item) in _INFLATED:
            continue
        most = most_inflated(len(item.stored_body), item.sys_flag)
        if most > room and begin < at:
            yield items[begin:at]
            begin, room = at, _INFLATED_BYTES
        room -= most
    if begin < len(items):
        yield items[begin:]


def _is_one(items: Sequence[Any]) -> bool:
    """Whether none of the items is to be inflated."""
    if type(items) is RowBlock:
        return True
    types = set(map(type, items))
    if types <= _INFLATED:
        return True
    if types & _INFLATED:
        return False
    packed = MessageSysFlag.COMPRESSED_FLAG
    return not any(flag & packed for flag in set(map(_SYS_FLAG, items)))
