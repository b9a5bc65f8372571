"""The file ``rmqctl/queues``: which queue each slot of the shared state belongs to.

One line a slot, in the order of slots, each with a checksum (CRC-32, 8 hex digits) of the slot's
number and the name, so that a changed byte and a moved line are noticed:

    Orders TAB 3 TAB 9ae0daaf

A topic that holds a tab, a newline or a backslash, which RocketMQ refuses, is written with Python's
escapes.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from storage.format.names import exact_str
from storage.format.shapes import is_id

QueueName = tuple[str, int]

_ESCAPED: Final = ("\\", "\t", "\n")


class QueueNamesError(ValueError):
    """A line is damaged. ``position`` counts bytes from the start of what was given."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position
        self.reason = reason


def name_line(slot: int, topic: str, queue_id: int) -> bytes:
    """Write the line of a slot."""
    if any(char in topic for char in _ESCAPED):
        topic = topic.encode("unicode_escape").decode("ascii")
    name = f"{exact_str(topic)}\t{queue_id}".encode("utf-8", "surrogateescape")
    return b"%s\t%08x\n" % (name, crc32(name, slot))


def read_name_lines(data: bytes, first_slot: int) -> list[QueueName]:
    """Read lines from that of ``first_slot`` on; QueueNamesError for the first damaged one."""
    names: list[QueueName] = []
    position = 0
    while position < len(data):
        end = data.find(b"\n", position) + 1 or len(data)
        names.append(_name_of(data[position:end], first_slot + len(names), position))
        position = end
    return names


def _name_of(line: bytes, slot: int, position: int) -> QueueName:
    name, _, seal = line.rpartition(b"\t")
    if seal != b"%08x\n" % crc32(name, slot):
        raise QueueNamesError(position, f"the check sum of line {slot + 1} is wrong")
    topic, _, queue_id = name.decode("utf-8", "surrogateescape").rpartition("\t")
    if not topic or not is_id(queue_id):
        raise QueueNamesError(position, f"line {slot + 1} names no queue")
    if "\\" in topic:
        topic = topic.encode("ascii", "replace").decode("unicode_escape", "replace")
    return topic, int(queue_id)
