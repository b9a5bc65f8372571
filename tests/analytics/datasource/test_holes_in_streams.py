"""Units of a queue that name no record, in streams: they stop none, and belong to one batch,
whichever way that is planned."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest

from tests.analytics.datasource.test_log_now import records_of
from tests.analytics.datasource.test_planning import WAYS, plan_by
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import Stream

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=2000)
FIRST, LAST = 40, 69
"""Of the hole."""
HOLE = LAST + 1 - FIRST


def with_hole(root: Path) -> Path:
    made = HandMade(CONFIG)
    for _ in range(100):
        made.put("T", 0)
    made.queues["T", 0][20 * FIRST : 20 * (LAST + 1)] = bytes(20 * HOLE)
    return made.write(root)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("most", [1, 10, HOLE - 1, HOLE, HOLE + 1, 99])
def test_a_stream_with_small_batches_goes_on_after_a_hole(
    tmp_path: Path, way: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_by(way, monkeypatch)
    stream = Stream(with_hole(tmp_path), onDamage="skip", maxOffsetsPerTrigger=str(most))
    batches = stream.drain()
    rows = [row["queue_offset"] for batch in batches for row in batch]
    assert rows == [n for n in range(100) if not FIRST <= n <= LAST]
    assert max(map(len, batches)) <= most


@pytest.mark.parametrize("ways", list(permutations(WAYS, 2)))
@pytest.mark.parametrize("last", [FIRST - 1, FIRST, FIRST + 9, LAST, LAST + 1])
@pytest.mark.parametrize("size", ["500", "100000"])
def test_each_unit_is_in_one_batch_where_a_stream_changes_its_way(
    tmp_path: Path, ways: tuple[str, str], last: int, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch ends after a record whose unit lies near the hole or in it."""
    root = with_hole(tmp_path)
    places = sorted(records_of(root))
    options = {"onDamage": "null", "maxBytesPerPartition": size}
    stream = Stream(root, maxBytesPerTrigger=str(places[last] + 1), **options)
    rows = []
    for way in ways:
        plan_by(way, monkeypatch)
        rows += [row["queue_offset"] for row in stream.trigger()]
        stream = Stream(root, at=stream.at, **options)
    assert sorted(rows) == list(range(100))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("most", [1, 4, 18, 19, 20])
@pytest.mark.parametrize("damaged", [4, 17])
@pytest.mark.parametrize("missing", [None, 15])
def test_a_batch_ends_in_the_log_though_a_unit_names_a_place_after_it(
    tmp_path: Path,
    way: str,
    most: int,
    damaged: int,
    missing: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan_by(way, monkeypatch)
    made = HandMade(CONFIG)
    for _ in range(20):
        made.put("T", 0)
    made.queues["T", 0][20 * damaged] ^= 0x10
    if missing is not None:
        made.queues["T", 0][20 * missing : 20 * (missing + 1)] = bytes(20)
    stream = Stream(
        made.write(tmp_path),
        onDamage="skip",
        maxOffsetsPerTrigger=str(most),
    )
    rows: list[int] = []
    ends: list[int] = []
    for _ in range(20):
        found = [row["queue_offset"] for row in stream.trigger()]
        assert len(found) <= most
        rows += found
        ends += [store["offset"] for store in json.loads(stream.at).values()]
    assert rows == [n for n in range(20) if n not in {damaged, missing}]
    assert max(ends) == ends[-1] == made.log_end
