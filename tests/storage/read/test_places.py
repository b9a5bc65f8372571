"""Where messages of a queue lie, and their store times: the same from units read together."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from storage.readonly import StoreView
from tests.support import golden
from tests.support.hand_made import TINY, HandMade

WIDE = TINY.with_(mapped_file_size_consume_queue=40_000)


def one_by_one(
    view: StoreView, topic: str, queue_id: int, offsets: set[int]
) -> dict[int, tuple[int, int | None]]:
    found = {}
    for offset in offsets:
        unit = view.unit(topic, queue_id, offset)
        if unit is not None:
            found[offset] = unit[0], view.store_timestamp(topic, queue_id, offset)
    return found


def check(view: StoreView) -> None:
    rng = random.Random(1)
    for topic, queue_id in view.queues():
        low, high = view.queue_bounds(topic, queue_id)
        for count in (0, 1, 2, 5, 40):
            offsets = {rng.randrange(low - 2, high + 3) for _ in range(count)}
            expected = one_by_one(view, topic, queue_id, offsets)
            assert view.places(topic, queue_id, offsets) == expected
            assert view.places(topic, queue_id, offsets, (low, high)) == expected
            for offset, (place, stored) in expected.items():
                unit = view.unit(topic, queue_id, offset)
                assert unit is not None
                assert view.record_timestamp(place, unit[1]) == stored


@pytest.mark.parametrize("name", golden.names()[::4])
def test_golden_stores(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        check(view)


@pytest.mark.parametrize("config", [TINY, WIDE], ids=["files of few units", "one file"])
def test_missing_files_and_what_is_no_record(tmp_path: Path, config: object) -> None:
    assert config in (TINY, WIDE)
    made = HandMade(TINY if config is TINY else WIDE)
    for number in range(300):
        made.put("T", body=b"x" * (number % 9))
    root = made.write(tmp_path)
    for file in sorted((root / "commitlog").iterdir())[1:2]:
        file.unlink()
    with StoreView.open(root, made.config) as view:
        check(view)
