"""Records that contradict the unit that points at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK_SIZE
from storage.format.layout import HEADS, MESSAGE_MAGIC_V1
from storage.format.message import LMQ_PREFIX
from storage.format.sys_flag import MessageSysFlag
from storage.tools.fsck.units import UNIT

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles, StoreFiles

_HEAD: Final = HEADS[0]
_IPV6: Final = 0x30


class Contradictions(NamedTuple):
    """Commit log offsets of records that contradict their unit."""

    places: set[int]
    """The log's order must decide which is right."""
    prepared: set[int]
    """Records marked as half messages, which have no unit; all else agrees."""


def contradictions(files: StoreFiles, queues: Iterable[tuple[str, int]]) -> Contradictions:
    """Compare the units of some queues with the heads that they point at.

    Light queues are skipped: their records name other queues.
    """
    found = Contradictions(set(), set())
    for topic, queue_id in queues:
        row = files.queue(topic, queue_id)
        if row is None or topic.startswith(LMQ_PREFIX):
            continue
        name = topic.encode("utf-8", "surrogateescape")
        for offset, size, queue_offset in _units(row):
            position = offset % files.log.file_size
            file = files.log.at(offset - position)
            if file is None or position + max(size, _HEAD.size) > file.length:
                continue
            head = _HEAD.unpack_from(file.view, position)
            if head[0] != size or head[1] != MESSAGE_MAGIC_V1 or head[7] & _IPV6:
                continue  # no whole record, or one that is checked with the log
            at = position + _HEAD.size + max(0, head[14])
            same = (head[3], head[5], head[6]) == (queue_id, queue_offset, offset)
            if not same or bytes(file.view[at + 1 : at + 1 + len(name)]) != name:
                found.places.add(offset)
            elif head[7] & MessageSysFlag.TRANSACTION_PREPARED_TYPE:
                found.prepared.add(offset)
    return found


def _units(row: ReadOnlyFiles) -> Iterator[tuple[int, int, int]]:
    """Offset and length of each record that a queue has a unit of, and its queue offset."""
    for first in row.relist():
        file = row.at(first)
        if file is None:
            continue
        whole = file.length // CQ_STORE_UNIT_SIZE * CQ_STORE_UNIT_SIZE
        units = np.frombuffer(file.view[:whole], UNIT)
        sizes = units["size"]
        present = (units["offset"] >= 0) & (sizes > 0) & (sizes != PRE_BLANK_SIZE)
        number = first // CQ_STORE_UNIT_SIZE
        for at in np.flatnonzero(present).tolist():
            yield int(units["offset"][at]), int(sizes[at]), number + at
