"""A closed store of any length that takes little disk space: all its units, and the records that
`fsck --fast` reads, with holes between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from storage.config import StoreConfig
from storage.format.checkpoint import CheckpointData
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.names import COMMITLOG, CONSUMEQUEUE, file_name
from storage.format.record import encode_record
from storage.store import MessageStore
from storage.tools.fsck.spot_check import SAMPLES, places

_RECORD = 8192
_QUEUES = 4
_FIRST_MS = 1_700_000_000_000
_HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
_UNITS = StoreConfig().mapped_file_size_consume_queue // CQ_STORE_UNIT_SIZE
_UNIT = np.dtype([("place", ">i8"), ("size", ">i4"), ("code", ">i8")])


def make_sparse_store(root: Path, gibibytes: int) -> Path:
    """Make a store whose log has so many files of 1 GiB; gives ``root``."""
    MessageStore.create(root)
    size = StoreConfig().mapped_file_size_commit_log
    messages = (gibibytes * size - _RECORD) // _RECORD  # the last file has room left
    each = messages // _QUEUES
    for queue_id in range(_QUEUES):
        folder = root / CONSUMEQUEUE / "sparse" / str(queue_id)
        folder.mkdir(parents=True)
        for first in range(0, each, _UNITS):
            units = np.zeros(_UNITS, _UNIT)
            here = min(_UNITS, each - first)
            numbers = np.arange(first, first + here, dtype=np.int64)
            units["place"][:here] = (numbers * _QUEUES + queue_id) * _RECORD
            units["size"][:here] = _RECORD
            (folder / file_name(first * CQ_STORE_UNIT_SIZE)).write_bytes(units.tobytes())
    observed = {
        offset * _QUEUES + queue_id
        for queue_id in range(_QUEUES)
        for offset in places(0, each, SAMPLES // _QUEUES).tolist()
    }
    observed |= {number * size // _RECORD for number in range(gibibytes)}
    (root / COMMITLOG).mkdir(exist_ok=True)
    for start in range(0, gibibytes * size, size):
        with (root / COMMITLOG / file_name(start)).open("wb") as file:
            file.truncate(size)
            for number in observed:
                if start <= number * _RECORD < start + size:
                    file.seek(number * _RECORD - start)
                    file.write(_record(number))
    newest = _FIRST_MS + each * _QUEUES - 1
    (root / "checkpoint").write_bytes(CheckpointData(newest, newest).pack())
    return root


def _record(number: int) -> bytes:
    def encode(body: bytes) -> bytes:
        return encode_record(
            topic="sparse",
            queue_id=number % _QUEUES,
            body=body,
            properties=b"",
            queue_offset=number // _QUEUES,
            physical_offset=number * _RECORD,
            store_timestamp=_FIRST_MS + number,
            born_timestamp=_FIRST_MS + number,
            born_host=_HOST,
            store_host=_HOST,
        )

    return encode(bytes(_RECORD - len(encode(b""))))
