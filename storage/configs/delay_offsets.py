"""delayOffset.json: how far the delivery of delayed messages is (ScheduleMessageService of 4.9).

{"offsetTable":{level: next offset of queue level - 1 of SCHEDULE_TOPIC_XXXX, ...}}
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from storage.format.names import CONFIG

from .config_file import ConfigFile, JsonObject

DELAY_OFFSET_FILE: Final = "delayOffset.json"


def load_delay_offsets(root: Path) -> dict[int, int]:
    """Read the next offset to deliver of each delay level (1-based); absent means 0.

    Java clamps them to the queue's bounds when it loads them. Raises CorruptFileError.
    """
    file = ConfigFile(root / CONFIG / DELAY_OFFSET_FILE, check=decode_delay_offsets)
    return decode_delay_offsets(file.load().document)


def decode_delay_offsets(document: JsonObject) -> dict[int, int]:
    """Take the offsets out of a document; ValueError or TypeError for what Java could not read."""
    table = document.get("offsetTable") or {}
    if not isinstance(table, dict):
        raise ValueError("offsetTable is no object")
    return {int(level): int(offset) for level, offset in table.items()}
