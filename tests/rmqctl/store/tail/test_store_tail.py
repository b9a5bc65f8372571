"""``store tail``: the log, record by record, as it grows."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from storage.store import MessageStore
from tests.support import golden
from tests.support.cli import Result, run, start
from tests.support.hand_made import START_MS, HandMade
from tests.support.samples import SMALL, TINY, Sample, batch, new_store, prepared


def tail(root: Path, *args: str) -> Result:
    return run("-S", root, "store", "tail", *args)


def put(root: Path, *samples: Sample) -> None:
    with MessageStore.open(root) as store:
        for sample in samples:
            store.put(prepared((sample,)))


@pytest.mark.parametrize(
    "name", ["small-files-4.9", "transaction-4.9", "ipv6-4.9", "retention-5.3"]
)
def test_every_record_of_a_log_comes_once_in_order(name: str) -> None:
    rows = [json.loads(line) for line in tail(golden.store(name), "-e", "-o", "jsonl").lines]
    places = [row["commitlog_offset"] for row in rows]
    assert places == sorted(set(places))
    shown = {(row["commitlog_offset"], row["topic"], row["queue_offset"]) for row in rows}
    for message in golden.manifest(name)["messages"]:
        assert (message["commitLogOffset"], message["topic"], message["queueOffset"]) in shown
    assert not any(row["problem"] for row in rows)


def test_damage_is_a_row_and_what_follows_comes() -> None:
    root = golden.store("torn-bad-crc-middle-4.9")
    rows = tail(root, "-e", "-o", "json").json()
    bad = [number for number, row in enumerate(rows) if row["problem"]]
    assert len(bad) == 1
    assert 0 < bad[0] < len(rows) - 1
    assert "CRC" in rows[bad[0]]["problem"]


def test_it_begins_where_it_is_told(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", SMALL)
    put(root, Sample("a", "A"), Sample("b", "B"), Sample("c", "A"))
    places = [row["commitlog_offset"] for row in tail(root, "-e", "-o", "json").json()]
    assert len(places) == 3
    for position in (places[1], places[1] + 7):  # any byte of a record means that record
        rows = tail(root, "-e", "--from", str(position), "-c", "1", "-o", "json").json()
        assert [row["topic"] for row in rows] == ["B"]
    assert tail(root, "-e", "--from", "end", "-o", "json").json() == []
    assert tail(root, "-e", "--from", "1h ahead").code == 2
    assert tail(root, "-e", "--from", "999999999").code == 3
    assert len(tail(root, "-e", "--from", "-1h", "-o", "json").json()) == 3
    assert tail(root, "-e", "--from", "2099-01-01", "-o", "json").json() == []
    wanted = tail(root, "-e", "--where", "topic == A", "-c", "2", "-o", "json").json()
    assert [row["keys"] for row in wanted] == [[], []]


def spoil(root: Path, position: int) -> None:
    """Make a record of a store with one log file unreadable."""
    (log,) = (root / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.seek(position + 4)
        file.write(b"\0\0\0\0")


def test_damage_before_a_time_is_as_old_as_the_record_after_it(tmp_path: Path) -> None:
    store = HandMade()
    hour = 3_600_000
    for number in range(6):
        store.put("T", body=b"%d" % number, step_ms=hour if number else 0)
    root = store.write(tmp_path / "s")
    places = [message.commitlog_offset for message in store.messages]
    for number in (1, 3):
        spoil(root, places[number])

    def shown(since: int) -> list[int]:
        rows = tail(root, "-e", "--from", f"@{since}", "-o", "json").json()
        return [places.index(row["commitlog_offset"]) for row in rows]

    assert shown(START_MS) == [0, 1, 2, 3, 4, 5]
    assert shown(START_MS + 1) == [1, 2, 3, 4, 5]
    assert shown(START_MS + 2 * hour) == [1, 2, 3, 4, 5]
    assert shown(START_MS + 2 * hour + 1) == [3, 4, 5]
    assert shown(START_MS + 4 * hour) == [3, 4, 5]
    assert shown(START_MS + 4 * hour + 1) == [5]


@pytest.mark.parametrize("end", [(), ("--where", "size > 0")])
def test_rows_are_sorted_only_where_there_is_an_end(store: Path, end: tuple[str, ...]) -> None:
    run("produce", "T", stdin=b"1\n22\n333\n")
    result = run("store", "tail", "--from", "start", "--sort", "-size", *end, "--timeout", "2s")
    assert result.code == 2
    assert "--sort prints after all is read" in result.err
    for stop in (["-e"], ["-c", 3], ["-e", "-c", 3]):
        result = run("store", "tail", "--from", "start", "--sort", "-size", *stop, "-o", "json")
        assert [row["body_size"] for row in result.json()] == [3, 2, 1]
    assert len(run("store", "tail", "-e", "-c", 2, "--sort", "-size", "-o", "json").json()) == 2


@pytest.mark.slow
def test_what_comes_is_shown_over_rolls_until_ctrl_c(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)  # log files of 4 KiB
    process = start("-S", root, "store", "tail", "--from", "start", "-o", "jsonl")
    seen = []
    try:
        for number in range(3):
            samples = batch(f"{number}-", 9, "A", (0,), size=300)
            put(root, *samples)
            seen += [json.loads(process.stdout.readline()) for _ in samples]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    finally:
        process.kill()
        process.communicate()
    assert [row["queue_offset"] for row in seen] == list(range(27))
    assert len({row["commitlog_offset"] // 4096 for row in seen}) > 2


def test_deleted_and_cut_parts_of_the_log_are_told_and_passed(tmp_path: Path) -> None:
    from rmqctl.store.tail.tail import LogTail
    from storage.readonly import StoreView

    root = new_store(tmp_path / "s", TINY)
    put(root, *batch("x", 30, "A", (0,), size=300))
    said: list[str] = []
    with StoreView.open(root) as view:
        begin = LogTail(view, 0, said.append)
        beyond = LogTail(view, view.log_max_offset() + 5000, said.append)
        oldest = min((root / "commitlog").iterdir())
        shutil.move(oldest, tmp_path / "gone")
        with StoreView.open(root) as later:
            assert later.log_min_offset() == 4096
        end = view.log_max_offset()
        begin._view = beyond._view = StoreView.open(root)
        rows = list(begin.rows(end))
        assert rows[0].commitlog_offset == 4096
        assert list(beyond.rows(end)) == []
        assert beyond.position == end
    assert ["deleted" in said[0], "gone" in said[1]] == [True, True]
