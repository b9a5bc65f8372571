"""Walking a log of many records gives what walking it record by record gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.record import BLANK_SIZE, blank_record, encode_record
from storage.log.walk import LogWalk, StretchKind

HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
COUNT = 40_000
FILE_SIZE = 5 << 20


@pytest.mark.slow
def test_damage_far_into_a_long_log_is_passed(tmp_path: Path) -> None:
    records = []
    place = 0
    for number in range(COUNT):
        record = encode_record(
            topic="T",
            queue_id=0,
            body=b"x" * (1 + number % 7),
            properties=b"",
            queue_offset=number,
            physical_offset=place,
            store_timestamp=1_700_000_000_000 + number,
            born_timestamp=0,
            born_host=HOST,
            store_host=HOST,
        )
        records.append(record)
        place += len(record)
    buffer = bytearray(b"".join(records))
    damaged = 39_000
    buffer[sum(map(len, records[:damaged])) + 88] ^= 1  # its body
    buffer += blank_record(FILE_SIZE - len(buffer))
    path = tmp_path / f"{0:020d}"
    path.write_bytes(buffer.ljust(FILE_SIZE, b"\0"))

    walk = LogWalk(ReadOnlyFiles(MapBudget(), str(tmp_path), FILE_SIZE), 0)
    found = []
    while (stretch := walk.next()) is not None:
        found.append(stretch)
    assert [stretch.start for stretch in found] == [
        sum(sum(before.sizes) for before in found[:i]) for i in range(len(found))
    ]
    kinds = [stretch.kind for stretch in found for _ in stretch.sizes]
    assert kinds[damaged] is StretchKind.DAMAGED
    assert kinds.count(StretchKind.RECORDS) == COUNT - 1
    assert kinds[-1] is StretchKind.BLANK
    sizes = [size for stretch in found for size in stretch.sizes]
    assert sizes[:COUNT] == [len(record) for record in records]
    assert sizes[COUNT] == FILE_SIZE - place >= BLANK_SIZE
