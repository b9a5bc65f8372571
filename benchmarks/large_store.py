"""A store with any number of messages: all its units, but only the records that are read.

The log is a row of sparse files. Record ``n`` of the store lies at byte ``n * RECORD``, in queue
``n % queues``: a reader finds the same units in a queue as if all messages had been sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from storage.config import StoreConfig
from storage.format.checkpoint import CheckpointData
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.names import COMMITLOG, CONSUMEQUEUE, file_name
from storage.format.properties import encode_properties
from storage.format.record import encode_record
from storage.store import MessageStore

RECORD = 256
"""Bytes of each record; log files hold a whole number of them."""
FIRST_MS = 1_700_000_000_000
_HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
_UNITS = StoreConfig().mapped_file_size_consume_queue // CQ_STORE_UNIT_SIZE


def make_large_store(
    root: Path, topic: str, messages: int, queues: int, *, shared_by: int = 1
) -> None:
    """Make a closed store with one topic; ``messages`` is a multiple of ``queues``.

    With ``shared_by`` so many neighbours of a queue point to the record of their first one, which
    exists: a reader of a few records finds a time in each.
    """
    MessageStore.create(root)
    each = messages // queues
    for queue_id in range(queues):
        _write_units(root, topic, queue_id, queues, each, shared_by)
    there = range(0, each, shared_by) if shared_by > 1 else (0,)
    places = [(queue_id, offset) for offset in there for queue_id in range(queues)]
    write_records(root, topic, queues, places)
    write_records(root, topic, queues, [(queue_id, each - 1) for queue_id in range(queues)])
    _fill_up(root)
    newest = FIRST_MS + messages
    (root / "checkpoint").write_bytes(CheckpointData(newest, newest).pack())


def write_records(root: Path, topic: str, queues: int, places: Iterable[tuple[int, int]]) -> None:
    """Write the records at some queue positions, (queue id, queue offset) each."""
    file_size = StoreConfig().mapped_file_size_commit_log
    for queue_id, offset in places:
        number = offset * queues + queue_id
        start = number * RECORD
        path = root / COMMITLOG / file_name(start - start % file_size)
        path.parent.mkdir(exist_ok=True)
        path.touch()
        with path.open("r+b") as file:
            file.truncate(file_size)
            file.seek(start % file_size)
            file.write(_record(topic, queue_id, offset, number))


def _record(topic: str, queue_id: int, offset: int, number: int) -> bytes:
    def encode(body: bytes) -> bytes:
        return encode_record(
            topic=topic,
            queue_id=queue_id,
            body=body,
            properties=encode_properties({"UNIQ_KEY": f"{number:032X}"}),
            queue_offset=offset,
            physical_offset=number * RECORD,
            store_timestamp=FIRST_MS + number,
            born_timestamp=FIRST_MS + number,
            born_host=_HOST,
            store_host=_HOST,
        )

    return encode(bytes(RECORD - len(encode(b""))))


def _write_units(
    root: Path, topic: str, queue_id: int, queues: int, count: int, shared_by: int
) -> None:
    import numpy as np

    folder = root / CONSUMEQUEUE / topic / str(queue_id)
    folder.mkdir(parents=True)
    layout = np.dtype([("place", ">i8"), ("size", ">i4"), ("code", ">i8")])
    for first in range(0, count, _UNITS):
        units = np.zeros(_UNITS, layout)
        here = min(_UNITS, count - first)
        offsets = np.arange(first, first + here, dtype=np.int64)
        offsets[offsets < count - 1] -= offsets[offsets < count - 1] % shared_by
        units["place"][:here] = (offsets * queues + queue_id) * RECORD
        units["size"][:here] = RECORD
        (folder / file_name(first * CQ_STORE_UNIT_SIZE)).write_bytes(units.tobytes())


def _fill_up(root: Path) -> None:
    """Make all log files between the first and the last one."""
    file_size = StoreConfig().mapped_file_size_commit_log
    last = max(int(path.name) for path in (root / COMMITLOG).iterdir())
    for start in range(0, last, file_size):
        with (root / COMMITLOG / file_name(start)).open("ab") as file:
            file.truncate(file_size)
