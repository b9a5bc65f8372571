"""What delayed delivery is about to do: ``<store>/rmqctl/deliveries``, a slot for each delay level.

Before a level stores a batch of messages, the delivering process notes the queue offset of the
batch's first message and the log's end. So after a kill the next process can find the copies that
delayOffset.json does not cover yet: they lie from that log offset on. Nothing is synced: a note
survives the process. After a power loss without the note more of the log is searched.

    zeros to 32, then a slot of 32 bytes for each level, the first at 32:
    queue offset (8), commit log offset (8), CRC-32 of these 16 bytes (4), little endian; zeros

A slot with a wrong checksum counts as no note, and so does a missing file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from storage.files.bounded import read_first
from storage.files.creating import open_or_create
from storage.format.names import OURS

DELIVERIES_FILE: Final = "deliveries"
_SLOT_SIZE: Final = 32
_NOTE: Final = Struct("<qq")
_CRC: Final = Struct("<I")
_MOST_LEVELS: Final = 1_024


class DeliveryNote(NamedTuple):
    """Copies of the messages from queue ``offset`` on lie at ``log_offset`` or after it."""

    offset: int
    log_offset: int


class DeliveryNotes:
    """The file of one store. Only the process that is elected to deliver writes it."""

    def __init__(self, root: Path) -> None:
        self.path = root / OURS / DELIVERIES_FILE
        self._fd: int | None = None

    def read(self) -> dict[int, DeliveryNote]:
        """Give the notes by level (1-based). Raises OSError for a file that cannot be read."""
        try:
            data = read_first(self.path, _SLOT_SIZE * (_MOST_LEVELS + 1))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        notes = {}
        for at in range(_SLOT_SIZE, len(data) - _NOTE.size - _CRC.size + 1, _SLOT_SIZE):
            content = data[at : at + _NOTE.size]
            (crc,) = _CRC.unpack_from(data, at + _NOTE.size)
            note = DeliveryNote(*_NOTE.unpack(content))
            if crc == crc32(content) and min(note) >= 0:
                notes[at // _SLOT_SIZE] = note
        return notes

    def write(self, level: int, note: DeliveryNote) -> None:
        """Note what a level is about to deliver. Raises OSError."""
        if level > _MOST_LEVELS:
            return
        if self._fd is None:
            self._fd = open_or_create(self.path)
        content = _NOTE.pack(*note)
        os.pwrite(self._fd, content + _CRC.pack(crc32(content)), _SLOT_SIZE * level)

    def close(self) -> None:
        """Release the file. Twice is fine; a later write opens it again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)
