"""A store as it was: ends and ages from the log, progress from samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storage.configs.offset_samples import OffsetSamples
from tests.support.cli import run
from tests.support.hand_made import START_MS, TINY, HandMade

T = START_MS


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A message a second, forty of them; the group has read all but two by now."""
    made = HandMade(TINY)
    for number in range(40):
        made.put("T", number % 2, step_ms=1000)
    made.write(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"T":{"topicName":"T","readQueueNums":2,"writeQueueNums":2,"perm":6}}}'
    )
    (tmp_path / "config" / "consumerOffset.json").write_text(
        json.dumps({"offsetTable": {"T@g": {"0": 19, "1": 19}}})
    )
    return tmp_path


def sampled(store: Path) -> None:
    samples = OffsetSamples(store)
    for at, offset in ((T + 10_000, 2), (T + 20_000, 5), (T + 30_000, 9)):
        samples.append({"T@g": {0: offset, 1: offset}}, {}, at)


@pytest.mark.feature(122)
def test_queues_end_where_they_ended(store: Path) -> None:
    columns = ("-o", "csv", "--columns", "queue_id,max_offset,count", "--no-headers")
    now = run("-S", store, "topic", "queues", "T", *columns)
    assert now.lines == ["0,20,20", "1,20,20"]
    then = run("-S", store, "topic", "queues", "T", "--as-of", T + 7_000, *columns)
    assert then.lines == ["0,4,4", "1,3,3"]
    before = run("-S", store, "topic", "queues", "T", "--as-of", T - 1, *columns)
    assert before.lines == ["0,0,0", "1,0,0"]


@pytest.mark.feature(122)
def test_lag_and_ages_are_those_of_then(store: Path) -> None:
    sampled(store)
    done = run("-S", store, "lag", "show", "g", "--as-of", T + 20_000, "-o", "json")
    (row,) = done.json()
    # At that second the 20th message came; five of each queue were read.
    assert row["lag"] == 20 - 10
    assert row["oldest_unread_timestamp"] == T + 11_000
    assert row["oldest_unread_age_ms"] == 9_000
    busy = run("-S", store, "lag", "show", "g", "--as-of", T + 25_000, "-o", "json").json()
    assert busy[0]["lag"] == 25 - 10
    places = run("-S", store, "offset", "inspect", "g", "--as-of", T + 20_000, "-o", "json").json()
    assert [(one["committed_offset"], one["max_offset"]) for one in places] == [(5, 10), (5, 10)]
    assert {one["source"] for one in places} == {"seen"}


def test_progress_that_was_not_sampled_is_unknown(store: Path) -> None:
    done = run("-S", store, "lag", "show", "g", "--as-of", T + 20_000, "-o", "json")
    (row,) = done.json()
    assert (row["lag"], row["unknown_queues"]) == (None, 2)
    assert "unknown for 1 of 1 groups and topics" in done.err
    sampled(store)
    after = run("-S", store, "offset", "inspect", "g", "--as-of", T + 35_000, "-o", "json").json()
    assert [one["committed_offset"] for one in after] == [None, None]


def test_what_can_not_be_asked(store: Path) -> None:
    future = run("-S", store, "lag", "show", "--as-of", "2100-01-01")
    assert (future.code, "lies in the future" in future.err) == (2, True)
    both = run("-S", store, "offset", "inspect", "--as-of", T, "--source", "bak")
    assert (both.code, "exclude each other" in both.err) == (2, True)
    assert run("-S", store, "offset", "inspect", "--source", "seen").code == 2
    (store / "commitlog" / f"{0:020}").unlink()
    gone = run("-S", store, "topic", "queues", "--as-of", T)
    assert gone.code == 3
    assert "may be deleted" in gone.err


@pytest.mark.slow
@pytest.mark.feature(54)
@pytest.mark.parametrize("seen", [True, False])
def test_rates_of_a_report_are_those_of_then(store: Path, seen: bool) -> None:
    if seen:
        sampled(store)
    for at in (T + 500, T + 20_000, T + 25_000, T + 40_000, T + 400_000):
        # After the last sample a report takes today's progress for that of then.
        rates = "rate_in" if seen and at > T + 30_000 else "rate_in,rate_out"
        options = ("--by", "queue", "-o", "csv", "--columns", f"queue_id,{rates}")
        shown = run("-S", store, "lag", "show", "g", "--as-of", at, *options)
        engine = ("--engine", "local")
        found = run("-S", store, "lag", "report", "g", "--as-of", at, *options, *engine)
        assert (shown.code, found.code) == (0, 0)
        assert found.lines == shown.lines, at


@pytest.mark.feature(54)
def test_a_rate_of_a_time_that_is_deleted_is_unknown(store: Path) -> None:
    files = sorted((store / "commitlog").iterdir())
    for path in files[: len(files) // 2]:
        path.unlink()
    for at, known in ((T + 3_000, False), (T + 40_000, False), (T + 10**7, True)):
        options = ("--engine", "local", "--as-of", at, "-o", "json")
        document = run("-S", store, "lag", "report", "g", *options).json()
        assert [row["rate_in"] is not None for row in document["queues"]] == [known] * 2, at


@pytest.mark.parametrize("by", ["group", "topic", "queue"])
def test_a_sum_of_then_that_leaves_out_queues_says_so(store: Path, by: str) -> None:
    for at, offset in ((T + 10_000, 2), (T + 20_000, 5), (T + 30_000, 9)):
        OffsetSamples(store).append({"T@g": {0: offset}}, {}, at)
    done = run("-S", store, "lag", "show", "g", "--as-of", T + 20_000, "-o", "json", "--by", by)
    assert done.json()[0]["lag"] == 5
    assert "known only in part for 1 of 1 groups and topics" in done.err
    assert "group g in T: no progress in queue 1" in done.err
    assert "not included in the sums" in done.err


@pytest.mark.feature(122)
def test_what_is_not_known_of_progress_then_is_no_none(store: Path) -> None:
    (store / "config" / "consumerOffset.json").write_text(
        json.dumps({"offsetTable": {"T@g": {"0": 19}, "T@h": {"0": 3}}})
    )
    columns = ("--columns", "queue_id,committed_offset,state,note")
    done = run("-S", store, "offset", "inspect", "g", "--as-of", T + 20_000, "-o", "json", *columns)
    assert done.json() == [
        {"queue_id": 0, "committed_offset": None, "state": None, "note": "at most 19"},
        {"queue_id": 1, "committed_offset": None, "state": "NONE", "note": None},
    ]
    assert "unknown for 1 of 1 groups and topics" in done.err
    shown = run("-S", store, "lag", "show", "g", "--as-of", T + 20_000)
    assert "unknown for 1 of 1 groups and topics" in shown.err
    everything = run("-S", store, "offset", "inspect", "--as-of", T + 20_000)
    assert "unknown for 2 of 2 groups and topics" in everything.err
