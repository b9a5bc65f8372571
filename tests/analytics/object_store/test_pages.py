"""Files that are filled on demand: what was looked at is known, and near ranges are joined."""

from __future__ import annotations

import mmap
from struct import Struct

import numpy as np
import pytest

from analytics.object_store.pages import BLOCK, FAR, PAGE, PagedFile, joined, shows_pages
from storage.files.read_files import ReadMap
from storage.queue.written_end import units_in_file
from tests.support.linux_forms import needs_linux_forms

pytestmark = needs_linux_forms
MIB = 1 << 20


def listed(ranges: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, int]]:
    return list(zip(*(side.tolist() for side in ranges), strict=True))


def test_this_system_says_which_pages_were_looked_at() -> None:
    assert shows_pages()


def test_what_was_looked_at_is_missing_until_it_is_filled() -> None:
    file = PagedFile(64 * MIB, 64 * MIB)
    assert listed(file.missing()) == []
    assert file.map[5 * MIB] == 0
    sum(memoryview(file.map)[40 * MIB : 40 * MIB + 3 * BLOCK])
    found = listed(file.missing())
    assert found == [(5 * MIB, 5 * MIB + BLOCK), (40 * MIB, 40 * MIB + 3 * BLOCK)]
    for start, end in found:
        file.fill(start, b"x" * (end - start))
    assert listed(file.missing()) == []
    assert file.map[5 * MIB] == ord("x")
    assert file.held == 4 * BLOCK


def test_reading_in_whatever_way_is_seen() -> None:
    file = PagedFile(16 * FAR, 16 * FAR)
    file.map.madvise(mmap.MADV_NORMAL)
    ways = (
        lambda at: Struct(">q").unpack_from(file.map, at),
        lambda at: np.frombuffer(file.map, ">i4", 4, at).sum(),
        lambda at: file.map.find(b"x", at, at + 4),
        lambda at: bytes(memoryview(file.map)[at : at + 4]),
        lambda at: any(file.map[at : at + 8]),
        lambda at: mmap.mmap.__getitem__(file.map, at),
    )
    for number, way in enumerate(ways):
        way(2 * number * FAR)
    found = listed(file.missing())
    assert found == [(2 * number * FAR, 2 * number * FAR + BLOCK) for number in range(len(ways))]


def test_a_reader_that_goes_on_gets_more_each_time() -> None:
    file = PagedFile(256 * MIB, 256 * MIB)
    rounds = at = 0
    while at < 64 * MIB:
        file.map[at]
        for start, end in listed(file.missing()):
            file.fill(start, bytes(end - start))
            at = end
        rounds += 1
    assert rounds < 24
    file.map[200 * MIB]
    assert listed(file.missing()) == [(200 * MIB, 200 * MIB + BLOCK)]


def test_patches_replace_what_is_stored_and_lie_past_its_end() -> None:
    file = PagedFile(
        4 * PAGE, PAGE + 100, [(10, b"abc"), (PAGE + 90, b"z" * 30), (3 * PAGE, b"end")]
    )
    file.fill(0, b"x" * (PAGE + 100))
    assert file.map[8:15] == b"xxabcxx"
    assert file.map[PAGE + 88 : PAGE + 122] == b"xx" + b"z" * 30 + b"\0\0"
    assert file.map[3 * PAGE : 3 * PAGE + 4] == b"end\0"
    file.map[2 * PAGE]
    assert listed(file.missing()) == []
    file.drop()
    assert file.map[3 * PAGE : 3 * PAGE + 3] == b"end"
    assert file.map[10] == 0
    assert listed(file.missing()) == [(0, PAGE + 100)]


def test_ranges_are_joined_unless_many_times_the_bytes_would_be_read() -> None:
    def of(*pairs: tuple[int, int]) -> list[tuple[int, int]]:
        starts, ends = np.array(pairs, np.int64).T
        return listed(joined(starts, ends))

    near = [(at, at + 3 * PAGE) for at in range(0, MIB, 4 * PAGE)]
    assert of(*near) == [(0, near[-1][1])]
    far = [(at, at + PAGE) for at in range(0, 64 * MIB, 16 * PAGE)]
    assert of(*far) == far
    assert of((0, MIB), (MIB + FAR, 2 * MIB + FAR)) == [(0, 2 * MIB + FAR)]
    assert of((0, MIB), (MIB + FAR + 1, 2 * MIB)) == [(0, MIB), (MIB + FAR + 1, 2 * MIB)]
    assert listed(joined(np.zeros(0, np.int64), np.zeros(0, np.int64))) == []


@pytest.mark.parametrize("count", [0, 1, 70_000, 299_999, 300_000])
def test_the_search_of_storage_for_the_end_of_a_queue_works_on_it(count: int) -> None:
    size = 300_000 * 20
    unit = Struct(">qiq").pack(1, 100, 7)
    stored = (unit * count).ljust(size, b"\0")
    file = PagedFile(size, size)
    found, missing = -1, [(0, 0)]
    for _ in range(40):
        found = units_in_file(ReadMap(file.map, 1))
        missing = listed(file.missing())
        if not missing:
            break
        for start, end in missing:
            file.fill(start, stored[start:end])
    assert (found, missing) == (count, [])
    assert file.held < size // 4
