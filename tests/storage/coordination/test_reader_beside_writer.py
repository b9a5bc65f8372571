"""A reader compares the shared state with the files while a writer changes both.

A real writer acts between any two reads of the comparison. Nothing it does is a contradiction.
"""

from __future__ import annotations

import mmap
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from storage.coordination.shared_state import SharedState, SharedStateBounds, Word
from storage.coordination.shared_state_check import contradiction, queue_agrees
from storage.errors import CorruptFileError
from storage.files.fs import FileSystem
from storage.files.read_files import MapBudget, ReadOnlyFiles, StoreFiles
from storage.format.names import file_name
from storage.readonly import StoreView
from tests.support.hand_made import TINY
from tests.support.samples import Sample, Ticking, new_store, open_store, prepared

HOUR_MS = 3_600_000
LOG_FILE = TINY.mapped_file_size_commit_log
QUEUE_FILE = TINY.mapped_file_size_consume_queue
QUEUES = [("T", 0), ("U", 0)]


class Writer:
    """Puts into all queues in turns: five units fill a file of a queue, some records one of the
    log."""

    def __init__(self, root: Path) -> None:
        self.root = root
        later = Ticking(int(time.time() * 1000) + HOUR_MS)  # its files are old at once
        self.store = open_store(root, TINY, clock=later)
        self.numbers = count()

    def put(self, messages: int, topics: tuple[str, ...] = ("T", "U")) -> None:
        for _ in range(messages):
            number = next(self.numbers)
            topic = topics[number % len(topics)]
            self.store.put(prepared([Sample(f"m{number}", topic)]))

    def roll(self) -> None:
        self.put(30)

    def delete_old_files(self) -> None:
        self.put(60)
        deleted = self.store.clean(manual=True, reserved_ms=0)
        assert deleted.log_files
        while self.store.clean(manual=True, reserved_ms=0).log_files:
            pass

    def delete_topic(self) -> None:
        assert self.store.delete_queues("T")

    def make_topic_anew(self) -> None:
        self.delete_topic()
        self.put(13)

    def begin_a_queue(self) -> None:
        number = next(self.numbers)
        self.store.put(prepared([Sample(f"m{number}", f"N{number}")]))

    def reopen_as_first_writer(self) -> None:
        """The next first writer makes the shared state anew."""
        set_word(self.root, Word.FAILED, 1)
        self.store.close()
        self.store = open_store(self.root, TINY)
        assert self.store.recovery is not None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "store", TINY)


@pytest.fixture
def writer(root: Path) -> Iterator[Writer]:
    writer = Writer(root)
    writer.put(33)
    yield writer
    writer.store.close()


def set_word(root: Path, number: int, value: int) -> None:
    shared = SharedState(FileSystem(), root, writable=True)
    shared.words[number] = value
    shared.close()


class Words:
    """The words of a reader, who is interrupted after each read of one."""

    def __init__(self, words: Any, read: Callable[[int], None]) -> None:
        self._words = words
        self._read = read

    def __getitem__(self, number: int) -> int:
        value: int = self._words[number]
        self._read(number)
        return value


class Interrupted(FileSystem):
    """The reader's file system: ``interrupt`` is called after each read of a word, with its
    number."""

    def __init__(self) -> None:
        self.interrupt: Callable[[int], None] = lambda number: None

    def words(self, mapped: mmap.mmap) -> Any:
        return Words(super().words(mapped), lambda number: self.interrupt(number))


class Listed(ReadOnlyFiles):
    """The files of a queue; a writer acts before and after each listing."""

    __slots__ = ("interrupt",)

    def relist(self) -> list[int]:
        self.interrupt: Callable[[], None]
        self.interrupt()
        found = super().relist()
        self.interrupt()
        return found


ACTS = ["roll", "delete_old_files", "delete_topic", "make_topic_anew", "begin_a_queue"]


def findings(shared: SharedState, root: Path) -> list[str]:
    """What a reader that opens the store finds wrong."""
    found = [shared.stale(log_file_size=LOG_FILE), contradiction(shared, root, LOG_FILE)]
    files = StoreFiles(root, TINY)
    bounds = SharedStateBounds(shared)
    for topic, queue_id in shared.queues():
        row = files.queue(topic, queue_id)
        assert row is not None
        if not bounds.agrees(topic, queue_id, row):
            found.append(f"queue {queue_id} of {topic}")
    return [text for text in found if text is not None]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.slow
def test_between_any_two_reads_of_words_a_writer_may_act(
    writer: Writer, root: Path, act: str
) -> None:
    shared = SharedState(fs := Interrupted(), root, writable=False)
    numbers: list[int] = []
    fs.interrupt = numbers.append
    assert findings(shared, root) == []
    shared.close()
    assert len(numbers) > 40
    for instant in range(len(numbers)):
        shared = SharedState(fs := Interrupted(), root, writable=False)
        fs.interrupt = once_at(instant, getattr(writer, act))
        assert findings(shared, root) == [], instant
        shared.close()
        writer.put(7)


def once_at(instant: int, act: Callable[[], None]) -> Callable[[int], None]:
    """Do something after so many reads."""
    reads = count()

    def interrupt(_number: int) -> None:
        if next(reads) == instant:
            act()

    return interrupt


@pytest.mark.slow
def test_a_writer_that_fills_a_file_between_all_reads_is_no_contradiction(
    writer: Writer, root: Path
) -> None:
    shared = SharedState(FileSystem(), root, writable=False)
    row = Listed(MapBudget(8), str(root / "consumequeue" / "T" / "0"), QUEUE_FILE)
    row.interrupt = writer.roll
    for _ in range(20):
        assert queue_agrees(shared, "T", 0, row)
    shared.close()


def test_a_view_trusts_the_shared_state_beside_a_writer_that_fills_a_file_at_each_look(
    writer: Writer, root: Path
) -> None:
    with StoreView.open(root) as view:
        row = Listed(view.files.budget, str(root / "consumequeue" / "T" / "0"), QUEUE_FILE)
        row.interrupt = writer.roll
        view.files._queues["T", 0] = row
        end = view.queue_bounds("T", 0).max_offset
        assert view.has_shared_state
        assert end <= writer.store.view.queue_bounds("T", 0).max_offset < end + 100


def test_the_log_file_that_was_the_last_one_is_deleted_as_an_old_one(
    writer: Writer, root: Path
) -> None:
    """After the reader has read the log's end, and before it looks at the file."""
    shared = SharedState(fs := Interrupted(), root, writable=False)

    def interrupt(number: int) -> None:
        if number == Word.LOG_END:
            fs.interrupt = lambda number: None
            writer.delete_old_files()

    while writer.store.view.log_max_offset() % LOG_FILE == 0:
        writer.put(1)
    fs.interrupt = interrupt
    assert shared.stale(log_file_size=LOG_FILE) is None
    assert not (root / "commitlog" / file_name(0)).exists()
    shared.close()


@pytest.mark.parametrize("instant", [0, 1])
def test_the_names_of_queues_are_cut_while_they_are_read(
    writer: Writer, root: Path, instant: int
) -> None:
    shared = SharedState(fs := Interrupted(), root, writable=False)

    def make_anew() -> None:
        owner = SharedState(FileSystem(), root, writable=True)
        owner.invalidate()
        owner.add_slot("New", 0)
        owner.close()

    fs.interrupt = once_at(instant, make_anew)
    shared.queues()
    assert shared.queues() == [("New", 0)]
    shared.close()


def test_names_that_are_too_short_are_damaged(writer: Writer, root: Path) -> None:
    (root / "rmqctl" / "queues").write_bytes(b"")
    shared = SharedState(FileSystem(), root, writable=False)
    with pytest.raises(CorruptFileError, match="0 bytes of"):
        shared.queues()
    shared.close()


def test_a_queue_whose_topic_is_deleted_has_not_lost_its_files(writer: Writer, root: Path) -> None:
    """Its end was read before, and its folder is not removed yet."""
    folder = root / "consumequeue" / "T" / "0"

    def delete() -> None:
        row.interrupt = lambda: None
        writer.delete_topic()
        folder.mkdir(parents=True)

    with StoreView.open(root) as view, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert view.queue_bounds("U", 0).max_offset > 0
        row = Listed(view.files.budget, str(folder), QUEUE_FILE)
        row.interrupt = lambda: None
        view.files._queues["T", 0] = row
        queue = view._queue("T", 0)
        assert queue is not None
        assert view.queue_bounds("T", 0).max_offset > 0
        queue._first_message = (-1, 0, 0)  # of another generation: its files are listed anew
        row.interrupt = delete
        assert view.queue_bounds("T", 0) == (0, 0)
        assert not list(folder.iterdir())


# -- a shared state that is made anew --------------------------------------------------------------


def test_a_view_that_stays_open_takes_the_slots_of_a_shared_state_that_was_made_anew(
    root: Path,
) -> None:
    """Slots follow the order of first messages, after a recovery that of the folders."""
    writer = Writer(root)
    writer.put(3, ("U",))
    writer.put(5, ("T",))
    with StoreView.open(root) as view:
        assert [view.queue_bounds(*queue) for queue in QUEUES] == [(0, 5), (0, 3)]
        writer.reopen_as_first_writer()
        writer.put(1, ("T",))
        assert [view.queue_bounds(*queue) for queue in QUEUES] == [(0, 6), (0, 3)]
        view.joins_writers()
        assert view.has_shared_state
        assert [view.queue_bounds(*queue) for queue in QUEUES] == [(0, 6), (0, 3)]
    writer.store.close()


# -- a shared state that was left ------------------------------------------------------------------


def word_of(root: Path, topic: str) -> int:
    shared = SharedState(FileSystem(), root, writable=False)
    slot = shared.slot(topic, 0)
    assert slot is not None
    number = shared.slot_word(slot)
    shared.close()
    return number


@pytest.mark.parametrize("change", [-1, 1, 1000])
def test_a_reader_that_left_it_sees_new_messages_and_comes_back(
    writer: Writer, root: Path, change: int
) -> None:
    number = word_of(root, "U")
    end = writer.store.view.queue_bounds("U", 0).max_offset
    set_word(root, number, end + change)
    with StoreView.open(root) as view:
        assert view.queue_bounds("U", 0) == (0, end)
        assert not view.has_shared_state
        for _ in range(3):
            before = view.queue_bounds("T", 0).max_offset
            writer.put(40, ("T",))
            assert view.queue_bounds("T", 0) == (0, before + 40)
            assert view.log_max_offset() == writer.store.view.log_max_offset()
            assert not view.joins_writers()
        set_word(root, number, end)
        assert view.joins_writers()
        writer.roll()
        for queue in QUEUES:
            assert view.queue_bounds(*queue) == writer.store.view.queue_bounds(*queue)
        assert view.has_shared_state


def test_it_comes_back_only_if_all_queues_agree(writer: Writer, root: Path) -> None:
    ends = {topic: writer.store.view.queue_bounds(topic, 0).max_offset for topic in ("T", "U")}
    for topic, end in ends.items():
        set_word(root, word_of(root, topic), end + 1)
    with StoreView.open(root) as view:
        view.queue_bounds("T", 0)
        assert not view.has_shared_state
        for topic, end in ends.items():
            assert not view.joins_writers()
            set_word(root, word_of(root, topic), end)
        assert view.joins_writers()


@pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
def test_it_comes_back_when_a_missing_file_is_there_again(writer: Writer, root: Path) -> None:
    end = writer.store.view.queue_bounds("T", 0).max_offset
    last = (end - 1) // 5 * 100
    path = root / "consumequeue" / "T" / "0" / file_name(last)
    aside = path.rename(root.parent / "aside")
    with StoreView.open(root) as view:
        view.queue_bounds("T", 0)
        assert not view.has_shared_state
        assert not view.joins_writers()
        aside.rename(path)
        assert view.joins_writers()
        assert view.queue_bounds("T", 0) == (0, end)
        assert view.has_shared_state


def test_a_list_of_queues_opens_no_file_of_them(writer: Writer, root: Path) -> None:
    """A command that needs one queue of 10,000 lists them all."""
    with StoreView.open(root) as view:
        assert ("T", 0) in view.queues()
        assert view._queues == {}
        assert view.has_shared_state
