"""Each word of the shared state is compared with the files: what a wrong one gives."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.append.queue_end import mend_queue
from storage.coordination.shared_state import (
    GONE,
    QUEUES_NAME,
    STAGE_DISPATCH,
    STAGE_KEYS,
    STAGE_NONE,
    STAGE_RECORDS,
    SharedState,
    Word,
)
from storage.coordination.shared_state_check import _agrees, contradiction, queue_agrees
from storage.files.fs import FileSystem
from storage.files.read_files import StoreFiles
from storage.format.record import BLANK_SIZE
from storage.queue.first_read import Unread, read_first
from tests.support.samples import SMALL, Sample, Ticking, batch, new_store, open_store, prepared

SIZE = SMALL.mapped_file_size_commit_log
DAY_MS = 86_400_000
ENDS = {("A", 0): 20, ("A", 1): 10, ("B", 0): 8}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL, clock=Ticking(int(time.time() * 1000) - DAY_MS)) as store:
        for first in range(10):
            store.put(prepared(batch(f"b-{first}", 3, "A", (0, 1))))
        for number in range(8):
            store.put(prepared([Sample(f"s-{number}", "B")]))
    return root


@pytest.fixture
def shared(root: Path) -> Iterator[SharedState]:
    found = SharedState(FileSystem(), root, writable=True)
    try:
        yield found
    finally:
        found.close()


def told(shared: SharedState, root: Path, **words: int) -> str | None:
    """The finding about the shared state where some words have other values."""
    before = {name: shared.words[getattr(Word, name)] for name in words}
    for name, value in words.items():
        shared.words[getattr(Word, name)] = value
    try:
        return contradiction(shared, root, SIZE)
    finally:
        for name, value in before.items():
            shared.words[getattr(Word, name)] = value


def test_what_is_right_is_not_contradicted(shared: SharedState, root: Path) -> None:
    assert told(shared, root) is None
    end = shared.words[Word.LOG_END]
    assert shared.words[Word.TO] == end
    assert (
        told(shared, root, STAGE=STAGE_KEYS, KEYS_FROM=shared.words[Word.FROM], KEYS_TO=end) is None
    )
    assert told(shared, root, LOG_END=shared.words[Word.FROM], STAGE=STAGE_DISPATCH) is not None, (
        "synced"
    )
    assert told(shared, root, FLUSHED_TO=0) is None
    assert told(shared, root, KEYS_FROM=shared.words[Word.FROM]) is None


@pytest.mark.parametrize("value", [-1, 1 << 60, 1 << 62])
def test_an_end_that_no_log_has(shared: SharedState, root: Path, value: int) -> None:
    assert told(shared, root, LOG_END=value) == "its words make no sense"


@pytest.mark.parametrize("value", [-1, 5, 1 << 40])
def test_a_stage_that_there_is_not(shared: SharedState, root: Path, value: int) -> None:
    assert told(shared, root, STAGE=value) == "its words make no sense"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("FLUSHED_TO", "synced or deleted"),
        ("LOG_MIN", "synced or deleted"),
        ("KEYS_FROM", "of records that are not"),
    ],
)
def test_words_that_lie_outside_of_the_log(
    shared: SharedState, root: Path, name: str, sentence: str
) -> None:
    end = shared.words[Word.LOG_END]
    assert told(shared, root, **{name: end}) is None
    for value in (-1, end + 1):
        assert sentence in (told(shared, root, **{name: value}) or "")


def test_keys_that_are_being_put(shared: SharedState, root: Path) -> None:
    start, end = shared.words[Word.FROM], shared.words[Word.LOG_END]
    for keys_to in (start - 1, end + 1):
        found = told(shared, root, STAGE=STAGE_KEYS, KEYS_FROM=start, KEYS_TO=keys_to)
        assert "keys are being put" in (found or ""), keys_to
    assert "no record begins" in (told(shared, root, KEYS_FROM=start + 4) or "")


def test_where_the_last_batch_ended(shared: SharedState, root: Path) -> None:
    start, end = shared.words[Word.FROM], shared.words[Word.LOG_END]
    sentence = "the log's end is not where the last batch ended"
    assert told(shared, root, TO=end + 1) == sentence
    assert told(shared, root, LOG_END=end + 1) == sentence
    moved = told(shared, root, LOG_END=start, FLUSHED_TO=0, KEYS_FROM=start)
    assert moved == "the log goes on after its end"
    for wrong in (start - 1, start + 1, start - 8):
        assert told(shared, root, FROM=wrong) == "the last batch is not where it should be"


def test_a_batch_that_ends_in_the_middle_of_a_record(shared: SharedState, root: Path) -> None:
    end = shared.words[Word.LOG_END] - 1
    low = {"FLUSHED_TO": 0, "KEYS_FROM": 0}
    assert (
        told(shared, root, LOG_END=end, TO=end, **low) == "the last batch is not where it should be"
    )


def test_a_batch_that_ends_in_the_middle_of_a_record_before_many(tmp_path: Path) -> None:
    root = new_store(tmp_path / "many", SMALL)
    with open_store(root, SMALL) as store:
        for number in range(90):
            store.put(prepared([Sample(f"m-{number}", "T")]))
    shared = SharedState(FileSystem(), root, writable=True)
    end = shared.words[Word.LOG_END] // 90 * 3 + 20
    words = {"LOG_END": end, "FROM": 0, "TO": end, "FLUSHED_TO": 0, "KEYS_FROM": 0}
    assert told(shared, root, **words) == "the last batch is not where it should be"
    shared.close()


def test_a_record_of_another_place_is_not_the_last_batch(shared: SharedState, root: Path) -> None:
    start, end = shared.words[Word.FROM], shared.words[Word.LOG_END]
    path = root / "commitlog" / f"{0:020}"
    data = bytearray(path.read_bytes())
    data[start + 28 : start + 36] = (start + 1).to_bytes(8, "big")
    path.write_bytes(data)
    assert told(shared, root) == "the last batch is not where it should be"
    assert end > start


def test_the_time_of_the_last_message(shared: SharedState, root: Path) -> None:
    last = shared.words[Word.LAST_STORE_TIMESTAMP]
    now = int(time.time() * 1000)
    sentence = "the time of the last message is another one"
    assert told(shared, root, LAST_STORE_TIMESTAMP=last - 1) == sentence
    assert told(shared, root, LAST_STORE_TIMESTAMP=last + 1) is None, "clocks of writers differ"
    assert told(shared, root, LAST_STORE_TIMESTAMP=now + DAY_MS // 2) is None
    assert told(shared, root, LAST_STORE_TIMESTAMP=now + 2 * DAY_MS) == sentence


def test_a_last_file_that_is_missing(shared: SharedState, root: Path) -> None:
    """The log ends with its file."""
    end = 3 * SIZE
    words = {"LOG_END": end, "FROM": end, "TO": end + BLANK_SIZE}
    assert told(shared, root, **words) == "the last log file is missing"
    assert told(shared, root, **words, LOG_MIN=end) is None, "nothing is left of the log"


def test_names_of_queues(shared: SharedState, root: Path) -> None:
    text = (root / "rmqctl" / QUEUES_NAME).read_bytes()
    lines = text.splitlines(keepends=True)
    assert len(lines) == len(ENDS)
    for count in (len(text) + 1, len(text) - 1, -1, len(lines[0]) - 1):
        found = told(shared, root, NAMES_BYTES=count)
        assert found == "the names of its queues end elsewhere", count
    for count in (0, len(lines[0]), len(text) - len(lines[-1])):
        assert told(shared, root, NAMES_BYTES=count) == "it has more queues than names", count
    (root / "rmqctl" / QUEUES_NAME).unlink()
    assert told(shared, root) == "the names of its queues end elsewhere"


FILE = 1000


@pytest.mark.parametrize(
    ("stage", "start", "to", "end", "agrees"),
    [
        (STAGE_RECORDS, 100, 200, 100, True),
        (STAGE_RECORDS, 100, 200, 200, False),
        (STAGE_RECORDS, 100, 100, 100, False),
        (STAGE_RECORDS, 900, 1000, 900, True),
        (STAGE_RECORDS, 900, 1001, 900, False),
        (STAGE_DISPATCH, 100, 200, 100, True),
        (STAGE_DISPATCH, 100, 200, 200, True),
        (STAGE_NONE, 100, 200, 150, False),
        (STAGE_NONE, 100, 200, 300, False),
        (STAGE_NONE, 950, 950 + BLANK_SIZE, 1000, True),
        (STAGE_NONE, 950, 951 + BLANK_SIZE, 1000, False),
        (STAGE_NONE, 950, 950 + BLANK_SIZE, 2000, False),
        (STAGE_NONE, 0, 0, 700, True),
        (STAGE_KEYS, 0, 0, 700, True),
        (STAGE_DISPATCH, 0, 0, 700, False),
        (STAGE_NONE, 0, 1, 700, False),
    ],
)
def test_the_end_fits_to_the_last_batch(
    stage: int, start: int, to: int, end: int, agrees: bool
) -> None:
    assert _agrees(stage, start, to, end, FILE) is agrees


# -- queues -----------------------------------------------------------------------------------


def agrees(shared: SharedState, root: Path, end: int, topic: str = "B", **words: int) -> bool:
    row = StoreFiles(root, SMALL).queue(topic, 0)
    assert row is not None
    number = shared.slot_word(slot_of(shared, topic))
    before, shared.words[number] = shared.words[number], end
    old = {name: shared.words[getattr(Word, name)] for name in words}
    for name, value in words.items():
        shared.words[getattr(Word, name)] = value
    try:
        (first,) = read_first(shared, [Unread(topic, 0, row)])
        found = queue_agrees(shared, topic, 0, row)
        assert found or first is None, "units of a queue with a wrong end were kept"
        return found
    finally:
        shared.words[number] = before
        for name, value in old.items():
            shared.words[getattr(Word, name)] = value


def slot_of(shared: SharedState, topic: str) -> int:
    slot = shared.slot(topic, 0)
    assert slot is not None
    return slot


def test_a_queue_ends_where_its_units_end(shared: SharedState, root: Path) -> None:
    end = ENDS["B", 0]
    assert agrees(shared, root, end)
    in_file = SMALL.mapped_file_size_consume_queue // 20
    for wrong in (-1, 0, 1, end - 1, end + 1, in_file - 1, in_file, in_file + 1, 1 << 62):
        assert not agrees(shared, root, wrong), wrong


def test_a_queue_whose_files_are_full_ends_with_them(tmp_path: Path) -> None:
    in_file = SMALL.mapped_file_size_consume_queue // 20
    root = new_store(tmp_path / "full", SMALL)
    with open_store(root, SMALL) as store:
        for first in range(0, in_file, 50):
            store.put(prepared(batch(f"b-{first}", 50, "B", (0,))))
    shared = SharedState(FileSystem(), root, writable=True)
    assert agrees(shared, root, in_file)
    assert not agrees(shared, root, in_file - 1)
    assert not agrees(shared, root, in_file + 1)
    shared.close()


def test_units_of_a_batch_that_is_being_dispatched(shared: SharedState, root: Path) -> None:
    """The log's end is set after the units: they lie past it until then."""
    start, end = shared.words[Word.FROM], ENDS["B", 0]
    assert agrees(shared, root, end, LOG_END=start, STAGE=STAGE_DISPATCH)
    assert agrees(shared, root, end - 1, LOG_END=start, STAGE=STAGE_DISPATCH)
    assert not agrees(shared, root, end, LOG_END=start)
    assert not agrees(shared, root, end - 2, LOG_END=start)


def test_a_queue_without_units_begins_at_0(shared: SharedState, root: Path) -> None:
    (path,) = (root / "consumequeue" / "B" / "0").iterdir()
    path.write_bytes(bytes(path.stat().st_size))
    assert agrees(shared, root, 0)
    assert not agrees(shared, root, 1)
    path.unlink()
    for end in (0, 5, (1 << 60) - 1):
        assert agrees(shared, root, end), "it has no file yet, or no more"
    for end in (-1, 1 << 60):
        assert not agrees(shared, root, end)
    assert agrees(shared, root, GONE), "it was deleted"


def test_a_queue_that_is_said_to_be_deleted_has_no_files(shared: SharedState, root: Path) -> None:
    assert not agrees(shared, root, GONE)


def test_a_queue_whose_first_file_was_deleted_begins_there_or_is_empty(
    shared: SharedState, root: Path
) -> None:
    (path,) = (root / "consumequeue" / "B" / "0").iterdir()
    size = SMALL.mapped_file_size_consume_queue
    path.rename(path.with_name(f"{size:020}"))
    first = size // 20
    assert not agrees(shared, root, 0), "it has units"
    assert agrees(shared, root, first + 8)
    later = path.with_name(f"{size:020}")
    later.write_bytes(bytes(size))
    assert agrees(shared, root, 0)
    assert agrees(shared, root, first)
    assert not agrees(shared, root, 1)


def test_a_wrong_end_is_mended_from_the_files(shared: SharedState, root: Path) -> None:
    slot = slot_of(shared, "B")
    shared.set_next_offset(slot, 3)
    shared.set_synced_offset(slot, 7)
    assert mend_queue(shared, "B", 0, SMALL)
    assert (shared.next_offset(slot), shared.synced_offset(slot)) == (ENDS["B", 0], 0)
    assert not mend_queue(shared, "unknown", 0, SMALL)


@pytest.mark.parametrize("what", ["units", "log"])
def test_what_is_more_than_a_wrong_word_is_not_mended(
    shared: SharedState, root: Path, what: str
) -> None:
    slot = slot_of(shared, "B")
    shared.set_next_offset(slot, 3)
    if what == "log":
        shared.words[Word.LOG_END] = shared.words[Word.FROM]
    else:
        (path,) = (root / "consumequeue" / "B" / "0").iterdir()
        with path.open("r+b") as file:
            file.write(bytes(20 * 8))
    assert not mend_queue(shared, "B", 0, SMALL)
    assert shared.next_offset(slot) == 3
