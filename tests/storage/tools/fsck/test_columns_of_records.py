"""The vectorised columns and sets that fsck works with, against plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, strategies as st

from storage.files.read_files import StoreFiles
from storage.format.dispatch import read_request
from storage.format.record import scan_records
from storage.record_batch.queue_numbers import TopicNames
from storage.record_batch.record_batch import read_block
from storage.tools.fsck.offset_runs import OffsetRuns
from tests.support.hand_made import TINY, HandMade

ROOMY = TINY.with_(mapped_file_size_commit_log=1 << 16)


def test_columns_say_what_single_records_say(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    made.put("T", body=b"")
    made.put("T", 3, keys=["a", "b b", "\u5317\u4eac"], tags="Tag")
    made.put("%RETRY%" + "g" * 150, version=2, properties={"UNIQ_KEY": "ABC", "x": "y"}, tags="Tag")
    made.put("T", 1, born_host=bytes(15) + b"\1" + bytes(4), keys=["k"])
    made.put("\u4e3b\u9898", properties={"TAGS": "\u6807\u7b7e", "KEYS": " a  b "})
    made.put("T", sys_flag=4, keys=["prepared"])
    made.put("T", sys_flag=12, keys=["rolled back"])
    files = StoreFiles(made.write(tmp_path), ROOMY)
    file = files.log.at(0)
    assert file is not None
    sizes = scan_records(file.view, 0, len(made.log)).sizes
    topics = TopicNames()
    block = read_block(file.view, 0, 0, sizes, topics)
    codes = block.tags_code
    owners, hashes = block.index_keys()
    position = 0
    for number, size in enumerate(sizes):
        single = read_request(file.view, position, size, (), first=block.first)
        assert block.offset[number] == block.physical_offset[number] == single.commitlog_offset
        assert block.store_timestamp[number] == single.store_timestamp
        assert codes[number] == single.tags_code
        assert tuple(hashes[owners == number]) == single.key_hashes
        for topic, queue_id, queue_offset in single.units:
            assert topics.names[int(block.topic[number])] == topic
            assert (block.queue_id[number], block.queue_offset[number]) == (queue_id, queue_offset)
        position += size
    assert len(block) == len(made.messages)


runs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8)), max_size=30)


@given(added=runs, start=st.integers(0, 70), length=st.integers(0, 70))
def test_runs_are_sets_of_numbers(added: list[tuple[int, int]], start: int, length: int) -> None:
    found = OffsetRuns()
    numbers: set[int] = set()
    for first, count in added:
        found.add(first, first + count)
        numbers |= set(range(first, first + count))
    assert len(found) == len(numbers)
    assert [n for n in range(80) if n in found] == sorted(numbers)
    assert {n for low, high in found for n in range(low, high)} == numbers
    missing = {n for low, high in found.missing(start, start + length) for n in range(low, high)}
    assert missing == set(range(start, start + length)) - numbers


@given(st.lists(st.lists(st.integers(0, 50), unique=True, max_size=20), max_size=5))
def test_runs_take_arrays(arrays: list[list[int]]) -> None:
    found = OffsetRuns()
    for array in arrays:
        found.add_all(np.array(array, np.int64))
    assert {n for low, high in found for n in range(low, high)} == {n for a in arrays for n in a}
