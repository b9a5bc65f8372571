"""delayOffset.json: how far the delivery of delayed messages is (ScheduleMessageService of 4.9).

{"offsetTable":{level: next offset of queue level - 1 of SCHEDULE_TOPIC_XXXX, ...}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from storage.files.fs import FileSystem
from storage.format.java_numbers import java_int, java_long
from storage.format.names import CONFIG

from .config_file import ConfigFile, JsonObject

DELAY_OFFSET_FILE: Final = "delayOffset.json"


def delay_offset_file(root: Path, fs: FileSystem | None = None) -> ConfigFile:
    """Give the file of the store at ``root``."""
    return ConfigFile(root / CONFIG / DELAY_OFFSET_FILE, fs, check=decode_delay_offsets)


def load_delay_offsets(root: Path) -> dict[int, int]:
    """Read the next offset to deliver of each delay level (1-based); absent means 0.

    Java clamps them to the queue's bounds when it loads them. Raises CorruptFileError.
    """
    return decode_delay_offsets(delay_offset_file(root).load().document)


def save_delay_offsets(
    root: Path, offsets: Mapping[int, int], fs: FileSystem | None = None
) -> bool:
    """Replace the offsets in the file; False if it says so already. One writer at a time.

    On the device when this returns. Members that only other versions know stay. Raises
    CorruptFileError and StoreNotWritableError.
    """
    file = delay_offset_file(root, fs)
    document = file.load().document
    return file.save({**document, "offsetTable": dict(sorted(offsets.items()))})


def decode_delay_offsets(document: JsonObject) -> dict[int, int]:
    """Take the offsets out of a document; ValueError or TypeError for what Java could not read."""
    table = document.get("offsetTable") or {}
    if not isinstance(table, dict):
        raise ValueError("offsetTable is no object")
    return {java_int(level): java_long(offset) for level, offset in table.items()}
