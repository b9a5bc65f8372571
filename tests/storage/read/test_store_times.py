"""Store times of many records at once are those that a reader of single ones finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from storage.files.read_files import StoreFiles
from storage.read.store_times import gather_store_timestamps
from storage.readonly import StoreView
from tests.support import golden
from tests.support.hand_made import TINY, HandMade


def units_of(view: StoreView) -> tuple[NDArray[np.int64], NDArray[np.int64], list[int | None]]:
    """Places, sizes and store times of all units, queue by queue."""
    places, sizes, times = [], [], []
    for topic, queue_id in view.queues():
        low, high = view.queue_bounds(topic, queue_id)
        for offset in range(low, high):
            unit = view.unit(topic, queue_id, offset)
            if unit is not None:
                places.append(unit[0])
                sizes.append(unit[1])
                times.append(view.store_timestamp(topic, queue_id, offset))
    return np.array(places, np.int64), np.array(sizes, np.int64), times


def gathered(root: Path) -> None:
    with StoreView.open(root) as view:
        places, sizes, times = units_of(view)
        found = gather_store_timestamps(StoreFiles(root, view.config).log, places, sizes)
        assert found.tolist() == [-1 if time is None else time for time in times]


@pytest.mark.parametrize("name", golden.names())
def test_the_times_of_golden_stores(name: str) -> None:
    gathered(golden.store(name))


def test_ipv6_hosts_move_the_field_and_files_end(tmp_path: Path) -> None:
    made = HandMade(TINY)
    for number in range(60):
        made.put(sys_flag=(0, 0x10, 0x20, 0x30)[number % 4], body=b"x" * (number % 9))
    made.write(tmp_path)
    gathered(tmp_path)


def test_what_is_no_record_has_no_time(tmp_path: Path) -> None:
    made = HandMade(TINY)
    for _ in range(9):
        made.put()
    made.write(tmp_path)
    log = StoreFiles(tmp_path, TINY).log
    first = made.messages[0]
    size = first.size
    asked = [0, 0, 1, -5, 1020, 1 << 40, 0]
    sizes = [size, size + 1, size, size, size, size, -1]
    found = gather_store_timestamps(log, np.array(asked), np.array(sizes))
    assert found.tolist() == [first.store_timestamp, -1, -1, -1, -1, -1, -1]
    assert gather_store_timestamps(log, np.array([], int), np.array([], int)).tolist() == []
