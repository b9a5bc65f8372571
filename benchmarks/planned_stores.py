"""Stores of many queues for planners: a thousand stores share the queue files of one.

A store is a log with a record for each queue and a link to the queues, which are the same in all of
them; the first record differs, as logs with one record in common would be copies of one log. It was
closed cleanly, as by a broker of RocketMQ's: there is no shared state.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.workload import HOST
from storage.config import StoreConfig
from storage.format.checkpoint import CheckpointData
from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.names import COMMITLOG, CONSUMEQUEUE, file_name
from storage.format.record import encode_record

_START_MS = 1_790_000_000_000
_QUEUES_OF_A_TOPIC = 8
_BODY = 100


def make_stores(folder: Path, stores: int, queues: int) -> None:
    """Make stores ``0/store``, ``1/store``, ... with so many queues each."""
    config = StoreConfig()
    units = folder / "units"
    places: list[tuple[int, int]] = []
    log = b""
    for number in range(queues):
        record = _record(number, len(log), 0)
        places.append((len(log), len(record)))
        log += record
    for number, (place, size) in enumerate(places):
        path = units / _topic(number) / str(number % _QUEUES_OF_A_TOPIC)
        path.mkdir(parents=True)
        with (path / file_name(0)).open("wb") as file:
            file.write(CQ_STORE_UNIT.pack(place, size, 0))
            file.truncate(config.mapped_file_size_consume_queue)
    newest = _START_MS + queues
    for number in range(stores):
        root = folder / str(number) / "store"
        (root / COMMITLOG).mkdir(parents=True)
        (root / CONSUMEQUEUE).symlink_to(units)
        first = _record(0, 0, number)
        with (root / COMMITLOG / file_name(0)).open("wb") as file:
            file.write(first + log[len(first) :])
            file.truncate(config.mapped_file_size_commit_log)
        (root / "checkpoint").write_bytes(CheckpointData(newest, newest).pack())


def _topic(number: int) -> str:
    return f"topic-{number // _QUEUES_OF_A_TOPIC:06}"


def _record(number: int, place: int, store: int, queue_offset: int = 0) -> bytes:
    return encode_record(
        topic=_topic(number),
        queue_id=number % _QUEUES_OF_A_TOPIC,
        body=f"{store:08}-{number:08}".encode().ljust(_BODY),
        properties=b"",
        queue_offset=queue_offset,
        physical_offset=place,
        store_timestamp=_START_MS + number,
        born_timestamp=_START_MS + number,
        born_host=HOST,
        store_host=HOST,
    )
