"""A search names the records that it could not read, the first ones, and counts all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rmqctl.admin.messages.search.query import Query
from rmqctl.admin.messages.search.run import Search
from storage.read.record_place import RecordPlace, place_of_record
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.hand_made import TINY, HandMade, Stored

SIZE = 4096
CONFIG = TINY.with_(mapped_file_size_commit_log=SIZE, mapped_file_size_consume_queue=2000)
SEARCH = ("message", "search", "-t", "T", "--min-size", "0")


def without_a_file(folder: Path) -> tuple[Path, HandMade]:
    """A store of 110 messages that has lost the second file of its log, and what was put."""
    made = HandMade(CONFIG)
    for number in range(110):
        made.put("T", number % 2, b"body %d" % number)
    root = made.write(folder)
    (root / "commitlog" / f"{SIZE:020}").unlink()
    return root, made


def made_store() -> HandMade:
    made = HandMade(CONFIG)
    for number in range(60):
        made.put("T", number % 2, b"body %d" % number)
    return made


def write(root: Path, message: Stored, at: int, data: bytes) -> None:
    place = message.commitlog_offset + at
    with (root / "commitlog" / f"{place - place % SIZE:020}").open("r+b") as file:
        file.seek(place % SIZE)
        file.write(data)


@pytest.mark.parametrize("more", [(), ("--count-only",), ("--around", "1")])
def test_a_damaged_record_is_named_by_its_place_and_its_id(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    made = made_store()
    root = made.write(tmp_path / "s")
    body, gone = made.messages[3], made.messages[8]
    write(root, body, 90, b"X")
    write(root, gone, 0, bytes(gone.size))
    found = run(*SEARCH, *more, "-S", root)
    assert found.code == 8
    ident = f"7F00000100002A9F{body.commitlog_offset:016X}"
    assert (
        f"left out message {ident} (topic T, queue 1, offset 1) at log offset "
        f"{body.commitlog_offset}: it is damaged"
    ) in found.err
    assert (
        f"left out a message (topic T, queue 0, offset 4) at log offset {gone.commitlog_offset}: "
    ) in found.err
    assert "2 damaged records may be hits, too" in found.err


def test_ten_are_named_and_all_are_counted(tmp_path: Path) -> None:
    made = made_store()
    root = made.write(tmp_path / "s")
    for message in made.messages[1:53:2]:
        write(root, message, 90, b"X")
    found = run(*SEARCH, "-S", root)
    assert found.code == 8
    assert found.err.count("left out message") == 10
    assert "and 16 more such messages" in found.err
    assert "26 damaged records may be hits, too" in found.err


def test_a_missing_file_of_the_log_is_left_out(tmp_path: Path) -> None:
    root = made_store().write(tmp_path / "s")
    files = sorted((root / "commitlog").iterdir())
    files[0].rename(tmp_path / "kept")
    assert run(*SEARCH, "-S", root).code == 0, "retention deletes the oldest files"
    (tmp_path / "kept").rename(files[0])
    made = HandMade(CONFIG)
    for number in range(110):
        made.put("T", number % 2, b"body %d" % number)
    root = made.write(tmp_path / "long")
    (root / "commitlog" / f"{SIZE:020}").unlink()
    found = run(*SEARCH, "-S", root)
    assert found.code == 8
    assert f"at log offset {SIZE}: it is damaged" in found.err


def test_a_missing_file_before_a_stop_is_told_at_the_stop(tmp_path: Path) -> None:
    root, made = without_a_file(tmp_path / "s")
    after = sum(message.commitlog_offset < SIZE for message in made.messages) + 1
    found = run(*SEARCH, "-S", root, "--limit", after)
    assert "to continue: --resume" in found.err
    assert found.code == 8
    assert f"at log offset {SIZE}: it is damaged" in found.err


@pytest.mark.parametrize("more", [(), ("--around", "1")])
def test_each_damaged_record_is_named_by_one_of_the_calls_of_a_search(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    made = made_store()
    root = made.write(tmp_path / "s")
    damaged = [made.messages[number] for number in (2, 7, 30, 50)]
    for message in damaged:
        write(root, message, 90, b"X")
    named: list[int] = []
    token: list[str] = []
    codes = []
    while True:
        found = run(*SEARCH, *more, "-S", root, "--limit", 6, "--columns", "queue_offset", *token)
        said = [int(at) for at in re.findall(r"at log offset ([0-9]+): it is damaged", found.err)]
        assert found.code == (8 if said else 0)
        codes.append(found.code)
        named += said
        stopped = re.search(r"stopped at the limit; to continue: --resume (\S+)", found.err)
        if stopped is None:
            break
        token = ["--resume", stopped[1]]
    assert named == [message.commitlog_offset for message in damaged]
    assert len(codes) > 8
    assert 0 in codes


def test_a_search_that_goes_on_in_a_gap_leaves_it_to_the_call_before(tmp_path: Path) -> None:
    root, _ = without_a_file(tmp_path / "s")
    for start, expected in ((SIZE, {SIZE}), (SIZE + 5, set[int]())):
        with StoreView.open(root) as view:
            search = Search(view, Query(None, lambda _: True, None, None), start=start)
            assert len(list(search.messages()))
            assert search.damaged == expected


def test_the_place_of_a_record_is_that_of_its_unit(tmp_path: Path) -> None:
    made = made_store()
    root = made.write(tmp_path / "s")
    with StoreView.open(root) as view:
        for message in made.messages:
            place = (message.topic, message.queue_id, message.queue_offset)
            ident = f"7F00000100002A9F{message.commitlog_offset:016X}"
            expected = RecordPlace(*place, ident)
            assert place_of_record(view, message.commitlog_offset) == expected
            assert place_of_record(view, message.commitlog_offset + 1) is None
        assert place_of_record(view, made.log_end) is None


@pytest.mark.parametrize("damaged", [1, 3, 7, 9], ids="message {}".format)
@pytest.mark.parametrize("kind", ["body", "record", "unit"])
def test_a_neighbour_of_a_hit_that_the_search_does_not_read_is_named(
    kind: str, damaged: int, tmp_path: Path
) -> None:
    """Of messages 1, 3, 5 (the hit), 7, 9 of a queue; the times are those of the hit alone."""
    made = made_store()
    root = made.write(tmp_path / "s")
    hit, message = made.messages[5], made.messages[damaged]
    if kind == "unit":
        with (root / "consumequeue" / "T" / "1" / f"{0:020}").open("r+b") as file:
            file.seek(message.queue_offset * 20 + 8)
            file.write((8).to_bytes(4, "big"))
    else:
        write(root, message, 90 if kind == "body" else 0, b"XXXX")
    times = ("--from", hit.store_timestamp, "--to", hit.store_timestamp + 1)
    words = ("message", "search", "body 5", "--around", 1, *times, "--columns", "queue_offset")
    for more in ((), ("--limit", 1)):
        found = run(*words, *more, "-S", root, "-o", "csv")
        beside = {1: [2, 3], 3: [2, 3], 7: [1, 2], 9: [1, 2]}[damaged] if damaged in {3, 7} else []
        assert found.lines[1:] == [str(at) for at in beside or [1, 2, 3]]
        assert found.code == (8 if beside else 0), found.err
        said = f"left out a message beside a hit (topic T, queue 1, offset {damaged // 2})"
        assert (said in found.err) == bool(beside)
        assert "may be hits" not in found.err


def test_neighbours_in_a_gap_of_the_log_are_named_as_the_gap_only(tmp_path: Path) -> None:
    root, _ = without_a_file(tmp_path / "s")
    found = run("message", "search", "body", "--around", 3, "-S", root)
    assert found.code == 8
    assert f"at log offset {SIZE}: it is damaged" in found.err
    assert "beside a hit" not in found.err
