"""Masking the properties of many records at once, as RecordTransform.remake does one by one.

Most records are usual: their properties are ASCII, each name comes once, and the mask changes
nothing but values. The new value is put into the text of such a record; all before its properties
is copied.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from storage.format.prepared_many import at_any_byte
from storage.format.properties import MAX_PROPERTIES_LENGTH, parse_properties
from storage.format.sys_flag import MessageSysFlag
from storage.record_batch.record_batch import MARK_LIGHT, MARK_ODD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from storage.format.prepared_many import Longs
    from storage.record_batch.record_batch import RecordBatch

    from .record_transform import PropertyChange, PropertyMask, RecordTransform

_V6: Final = MessageSysFlag.BORNHOST_V6_FLAG | MessageSysFlag.STOREHOSTADDRESS_V6_FLAG
_BODY_LENGTH_AT: Final = 84
_BODY_AT: Final = 88
_LENGTH_SIZE: Final = 2
_INT: Final = np.dtype(">i4")
_SHORT: Final = np.dtype(">u2")


class PropertyMasking:
    """A mask that changes the values of properties."""

    def __init__(self, mask: "PropertyMask", changes: "Sequence[PropertyChange]") -> None:
        self._mask = mask
        self._changes = [
            (start := f"{name}\x01".encode("utf-8", "surrogateescape"), b"\x02" + start, change)
            for name, change in changes
        ]

    def texts(
        self, buffer: bytearray, block: "RecordBatch", is_ascii: "NDArray[np.bool_]"
    ) -> list[bytes | None]:
        """The new properties of each record in ``buffer``, as stored; None for one that has to be
        masked as a message. ``is_ascii``: which records have a topic of ASCII."""
        texts: list[bytes | None] = [None] * len(block)
        if not texts:
            return texts
        rows = np.flatnonzero(self._usual(buffer, block) & is_ascii)
        begins = block.properties_at[rows]
        ends = begins + block.properties_length[rows]
        changed = self._changed
        data = bytes(buffer)  # its slices are quicker than those of a view
        for row, begin, end in zip(rows.tolist(), begins.tolist(), ends.tolist(), strict=True):
            texts[row] = changed(data[begin:end])
        return texts

    def _usual(self, buffer: bytearray, block: "RecordBatch") -> "NDArray[np.bool_]":
        """Which records have IPv4 hosts, a body as it was sent, and ASCII properties up to their
        end."""
        special = MessageSysFlag.COMPRESSED_FLAG | _V6 if self._mask.unpacks else _V6
        usual: NDArray[np.bool_] = (block.sys_flag & special == 0) & (
            block.marks & (MARK_LIGHT | MARK_ODD) == 0
        )
        place = np.where(usual, block.place, 0)  # the length of a body lies elsewhere with IPv6
        usual &= at_any_byte(buffer, _INT)[place + _BODY_LENGTH_AT] > 0
        lengths = at_any_byte(buffer, _SHORT)[block.properties_at - _LENGTH_SIZE]
        usual &= lengths == block.properties_length
        starts = self._mask.special_starts
        begins = np.frombuffer(buffer, np.uint8)[place + _BODY_AT]
        maybe = usual & np.isin(begins, [start[0] for start in starts])
        for row in np.flatnonzero(maybe).tolist():
            body = int(block.place[row]) + _BODY_AT
            usual[row] = not buffer.startswith(starts, body, int(block.properties_at[row]))
        return usual

    def _changed(self, text: bytes) -> bytes | None:
        """Properties with the changes, as they would be encoded anew; None if they are unusual."""
        if text and len(parse_properties(text)) != text.count(b"\x02") + 1:
            return None  # a name comes twice, or an item is none
        for start, marker, change in self._changes:
            at = text.find(marker) + 1
            if not at and not text.startswith(start):
                continue
            begin = at + len(start)
            end = text.find(b"\x02", begin)
            if end < 0:
                end = len(text)
            value = change(text[begin:end].decode())
            if not value.isascii() or "\x02" in value:
                return None
            if value:
                text = text[:begin] + value.encode() + text[end:]
            else:  # the separator before it goes, too, or the one after the first
                text = text[: at - 1] + text[end:] if at else text[end + 1 :]
        return text if len(text) <= MAX_PROPERTIES_LENGTH else None


def masking_of(transform: "RecordTransform") -> PropertyMasking | None:
    """What masks most records of a transform; None if each is to be masked as a message."""
    mask = transform.property_mask
    changes = None if mask is None else mask.property_changes()
    if mask is None or changes is None or any({"\x01", "\x02"} & {*name} for name, _ in changes):
        return None  # no property has a name with a separator
    return PropertyMasking(mask, changes)


def with_texts(
    buffer: bytearray, block: "RecordBatch", texts: "Sequence[bytes]"
) -> "tuple[bytearray, Longs]":
    """The records of a block, whose bytes these are, with other properties; their sizes."""
    begins, ends = block.place, block.properties_at
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    parts: list[bytes | memoryview] = [b""] * (2 * len(texts))
    with memoryview(buffer) as view:
        parts[::2] = [
            view[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        parts[1::2] = texts
        made = bytearray().join(parts)
    sizes = ends - begins + lengths
    if len(sizes):
        ends = np.cumsum(sizes)
        at_any_byte(made, _INT)[ends - sizes] = sizes
        at_any_byte(made, _SHORT)[ends - lengths - _LENGTH_SIZE] = lengths
    return made, sizes
