"""Pages of a file are made by a thread before they are stored to, and hold what they held."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from storage.append import append, fast_append
from storage.files.fs import FileSystem
from storage.files.mapped_file import MappedFile
from storage.files.preallocation import OF_INDEX, OF_LOG, OF_QUEUE, Preallocation
from storage.format.encode_column import prepare_column
from storage.format.prepared import PreparedRecords
from storage.index import writer
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.consumers import eventually
from tests.support.linux_forms import needs_linux_forms
from tests.support.samples import HOST, SMALL, START_MS, Ticking, new_store, open_store, sync_flush

MIB = 1 << 20
SIZE = 24 * MIB
WINDOW = 4 * MIB
CONFIG = SMALL.with_(
    mapped_file_size_commit_log=SIZE,
    mapped_file_size_consume_queue=20 * 30_000,
    max_hash_slot_num=500,
    max_index_num=100_000,
)
pytestmark = [needs_compiled, needs_linux_forms]


@pytest.fixture(autouse=True)
def with_compiled_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "00000000000000000000"
    made.touch()
    os.truncate(made, SIZE)
    return made


@pytest.fixture
def file(path: Path) -> Iterator[MappedFile]:
    with_blocks = MappedFile(FileSystem(), path, SIZE, 0, writable=True)
    with_blocks.reserve(0, SIZE, SIZE)
    with_blocks.expect_nothing_to_read()
    yield with_blocks
    with_blocks.close()


def is_in_memory(mapped: mmap.mmap) -> list[bool]:
    """Of each page, as the system says it."""
    pages = len(mapped) // mmap.PAGESIZE
    said = (ctypes.c_ubyte * pages)()
    at = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(len(mapped)), said) == 0
    return [bool(shared & 1) for shared in said]


def made_to(file: MappedFile, position: int) -> int:
    return position if file.pages is None else file.pages.made_to(position)


def made(file: MappedFile, position: int, end: int) -> None:
    eventually(lambda: made_to(file, position) >= end, f"pages were not made up to {end}")


# -- pages of one file ---------------------------------------------------------------------------


def test_pages_that_were_wanted_are_in_memory_and_no_others(file: MappedFile) -> None:
    assert made_to(file, 0) == 0
    file.make_pages(0, 5 * MIB)
    made(file, 0, 5 * MIB)
    pages = is_in_memory(file.map)
    assert all(pages[: 5 * MIB // mmap.PAGESIZE])
    assert not any(pages[6 * MIB // mmap.PAGESIZE :]), "a large page may reach beyond"


def test_they_hold_what_they_held(file: MappedFile, path: Path) -> None:
    before = random.Random(3).randbytes(3 * MIB + 77)
    file.write(MIB - 5, before)
    file.make_pages(0, SIZE)
    made(file, 0, SIZE)
    whole = bytes(MIB - 5) + before
    assert file.read(0, SIZE) == whole.ljust(SIZE, b"\0")
    assert path.read_bytes() == whole.ljust(SIZE, b"\0")


def test_what_is_stored_meanwhile_stays(file: MappedFile) -> None:
    """Stores go on right after the thread, in it and before it."""
    file.make_pages(0, SIZE)
    for position in range(0, SIZE, 1000):
        file.map[position : position + 8] = position.to_bytes(8, "big")
    made(file, 0, SIZE)
    for position in range(0, SIZE, 1000):
        assert file.read(position, 8) == position.to_bytes(8, "big")


def test_it_begins_a_little_behind_who_stores(file: MappedFile) -> None:
    file.make_pages(100, SIZE)
    made(file, 4 * MIB, SIZE)
    assert made_to(file, 100) == 100, "these pages are made by who stores"
    assert made_to(file, SIZE - 1) == SIZE
    assert made_to(file, SIZE + 1) == SIZE + 1
    assert not any(is_in_memory(file.map)[: 4 * MIB // mmap.PAGESIZE])


def test_it_goes_on_where_it_was(file: MappedFile) -> None:
    file.make_pages(0, 3 * MIB)
    made(file, 0, 3 * MIB)
    file.make_pages(2 * MIB, 9 * MIB)
    made(file, 0, 9 * MIB)


def test_pages_before_who_stores_are_not_made(file: MappedFile) -> None:
    file.make_pages(0, MIB)
    made(file, 0, MIB)
    file.make_pages(8 * MIB, SIZE)
    made(file, 10 * MIB, SIZE)
    assert not any(is_in_memory(file.map)[4 * MIB // mmap.PAGESIZE : 10 * MIB // mmap.PAGESIZE])


def test_who_is_overtaken_lets_it_be_until_it_is_asked_again(path: Path) -> None:
    def asked_again() -> int:
        """How often, until it is there; 0 if it was too quick to be overtaken."""
        file = MappedFile(FileSystem(), path, SIZE, 0, writable=True)
        file.expect_nothing_to_read()
        file.make_pages(0, SIZE)
        pages: Any = file.pages
        pages.stores_at(SIZE)
        asked = 0
        while made_to(file, SIZE - 2 * MIB) < SIZE:
            file.make_pages(SIZE - 4 * MIB, SIZE)
            asked += 1
        left_out = made_to(file, 0) == 0
        file.close()
        return asked if left_out else 0

    eventually(lambda: asked_again() > 1, "it never let anything be")


def test_a_closed_file_is_unmapped(path: Path) -> None:
    file = MappedFile(FileSystem(), path, SIZE, 0, writable=True)
    file.make_pages(0, SIZE)
    pages: Any = file.pages
    file.close()  # the thread may be amid a piece
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert pages.made_to(0) == 0
    with pytest.raises(ValueError, match="no such bytes"):
        pages.want(0, MIB)
    pages.end()


def test_what_makes_pages_holds_the_map(path: Path) -> None:
    with path.open("r+b") as opened:
        mapped = mmap.mmap(opened.fileno(), SIZE)
        pages = compiled.pages_ahead(mapped, opened.fileno(), MIB, MIB)
    with pytest.raises(BufferError):
        mapped.close()
    for wrong in ((-1, 5), (5, 4), (0, SIZE + 1)):
        with pytest.raises(ValueError, match="no such bytes"):
            pages.want(*wrong)
    for wrong_end in (-1, SIZE + 1):
        with pytest.raises(ValueError, match="no such bytes"):
            pages.want_first(wrong_end)
    pages.end()
    mapped.close()
    with pytest.raises((BufferError, TypeError)):
        compiled.pages_ahead(b"read-only", 0, MIB, MIB)
    for piece, lead in ((0, MIB), (MIB, 0), (MIB + 1, MIB), (MIB, MIB - 1)):
        with pytest.raises(ValueError, match="some pages"):
            compiled.pages_ahead(bytearray(MIB), 0, piece, lead)


def signals_kept_from(thread: Path) -> int:
    lines = (thread / "status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("SigBlk:")).split()[1], 16)


def test_no_signal_comes_to_the_thread(file: MappedFile) -> None:
    """Python's are for its main thread, which they are to wake up."""
    threads = Path("/proc/self/task")
    file.make_pages(0, MIB)
    made(file, 0, MIB)
    (own,) = page_makers()
    usual = 0x7FFFFFFF & ~(1 << 8 | 1 << 18)  # 1 to 31 but SIGKILL and SIGSTOP
    assert signals_kept_from(own) & usual == usual
    assert signals_kept_from(threads / str(os.getpid())) & 1 << 1 == 0


def page_makers() -> list[Path]:
    """The threads that make pages: one, or none."""
    found = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError, FileNotFoundError):  # it has just ended
            if (thread / "comm").read_text() == "pages-ahead\n":
                found.append(thread)
    return found


@pytest.mark.slow
def test_one_thread_is_there_for_all_files_while_one_of_them_is(tmp_path: Path) -> None:
    before = len(page_makers())  # a store that another test has open may have it
    files = []
    for number in range(20):
        path = tmp_path / f"{number:020}"
        path.touch()
        os.truncate(path, SIZE)
        files.append(MappedFile(FileSystem(), path, SIZE, 0, writable=True))
        files[-1].make_pages(0, SIZE)
    for number in range(0, 20, 3):  # amid their work, or waiting for it
        files[number].close()
        files[number] = files[-1]
    for file in files:
        made(file, 0, SIZE)
    assert len(page_makers()) == 1
    for file in files:
        if not file.map.closed:
            file.close()
    eventually(lambda: len(page_makers()) <= before, "the thread stayed")


def test_the_beginning_of_a_file_is_made_if_it_is_stored_to_all_the_time(file: MappedFile) -> None:
    before = random.Random(3).randbytes(MIB)
    file.write(MIB - 7, before)
    file.make_pages(6 * MIB, 12 * MIB, first=5 * MIB)
    made(file, 8 * MIB, 12 * MIB)
    eventually(lambda: all(is_in_memory(file.map)[: 5 * MIB // mmap.PAGESIZE]), "it was not made")
    assert made_to(file, 0) == 0, "this is about where stores go on"
    assert not any(is_in_memory(file.map)[14 * MIB // mmap.PAGESIZE :])
    assert file.read(0, 3 * MIB) == (bytes(MIB - 7) + before).ljust(3 * MIB, b"\0")


def test_a_forked_child_has_a_thread_of_its_own_for_its_own_files(file: MappedFile) -> None:
    file.make_pages(0, MIB)
    made(file, 0, MIB)  # it waits now, for ever in the child
    child = os.fork()
    if not child:
        code = 1
        try:
            file.make_pages(0, SIZE)
            file.close()
            file.pages = None
            own = MappedFile(FileSystem(), file.path, SIZE, 0, writable=True)
            own.make_pages(0, SIZE)
            made(own, 4 * MIB, SIZE)
            own.close()
            code = 0
        finally:
            os._exit(code)
    eventually(lambda: os.waitpid(child, os.WNOHANG) == (child, 0), "the child hangs")
    file.make_pages(0, SIZE)
    made(file, 0, SIZE)


# -- windows -------------------------------------------------------------------------------------


def windows(*seconds: float, makes_pages: bool = True) -> Preallocation:
    """Windows that are asked for at these times."""
    window = OF_LOG._replace(size=WINDOW, ahead=WINDOW)
    return Preallocation(window, makes_pages=makes_pages, seconds=iter(seconds).__next__)


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "LOG_WINDOW", WINDOW)
    monkeypatch.setattr(append, "OF_LOG", OF_LOG._replace(size=WINDOW, ahead=WINDOW))
    little: dict[str, Any] = {
        "quick_s": float("inf"),
        "piece": 2 * mmap.PAGESIZE,
        "lead": mmap.PAGESIZE,
    }
    of_queue = OF_QUEUE._replace(size=4 * mmap.PAGESIZE, ahead=8 * mmap.PAGESIZE, **little)
    monkeypatch.setattr(fast_append, "OF_QUEUE", of_queue)
    of_index = OF_INDEX._replace(size=8 * mmap.PAGESIZE, ahead=8 * mmap.PAGESIZE, **little)
    monkeypatch.setattr(writer, "INDEX_WINDOW", of_index.size)
    monkeypatch.setattr(writer, "OF_INDEX", of_index)


def test_a_window_that_follows_quickly_has_another_one_behind_it(path: Path) -> None:
    file = MappedFile(FileSystem(), path, SIZE, 0, writable=True)
    ahead = windows(0, 0.3, 0.6, 0.9, 1.2)
    ahead.reserve(file, 0, 100)
    assert (file.reserved_to, file.pages) == (WINDOW, None)
    ahead.reserve(file, WINDOW - 50, 100)
    assert file.reserved_to == 2 * WINDOW
    made(file, WINDOW + 4 * MIB, 3 * WINDOW)
    assert path.stat().st_blocks * 512 == 3 * WINDOW
    ahead.reserve(file, 2 * WINDOW - 50, 50)  # asks for no time
    ahead.reserve(file, 2 * WINDOW - 50, 51)
    made(file, WINDOW + 4 * MIB, 4 * WINDOW)
    ahead.reserve(file, 3 * WINDOW, 100)
    made(file, WINDOW + 4 * MIB, 5 * WINDOW)
    ahead.reserve(file, 4 * WINDOW, 100)
    made(file, 5 * WINDOW, SIZE)
    file.close()


@pytest.mark.parametrize(
    ("times", "makes_pages"), [((0, 0.5, 1), True), ((0, 0.1, 0.2), False)], ids=["slow", "never"]
)
def test_else_it_has_blocks_only(path: Path, times: tuple[float, ...], makes_pages: bool) -> None:
    file = MappedFile(FileSystem(), path, SIZE, 0, writable=True)
    ahead = windows(*times, makes_pages=makes_pages)
    for number in range(3):
        ahead.reserve(file, number * WINDOW, 100)
        assert file.reserved_to == (number + 1) * WINDOW
    assert file.pages is None
    file.close()


def test_one_put_among_many_of_other_processes_has_no_pages_made(path: Path) -> None:
    file = MappedFile(FileSystem(), path, SIZE, 0, writable=True)
    ahead = windows(0, 0.1, 0.2, 0.3)
    has_pages = []
    for position in (0, 2 * WINDOW + 100, 4 * WINDOW + 100, 5 * WINDOW):  # others fill two windows
        ahead.reserve(file, position, 100)
        assert file.reserved_to == (position // WINDOW + 1) * WINDOW
        has_pages.append(file.pages is not None)
    assert has_pages == [False, False, False, True]
    file.close()


def test_one_write_of_many_bytes_makes_its_pages_itself(path: Path) -> None:
    file = MappedFile(FileSystem(), path, SIZE, 0, writable=True)
    ahead = windows(0, 0.1, 0.2)
    for number in range(2):
        ahead.reserve(file, number * WINDOW, 2 * MIB)
        assert file.reserved_to == (number + 1) * WINDOW
    assert file.pages is None
    file.close()


# -- the store -----------------------------------------------------------------------------------


def column(number: int, rng: random.Random) -> PreparedRecords:
    count = rng.choice([3, 20, 33])
    bodies = [rng.randbytes(rng.choice([1, 100, 3_000, 9_000])) for _ in range(count)]
    return prepare_column(
        "T",
        [i % 2 for i in range(count)],
        bodies,
        born_timestamp=START_MS,
        born_host=HOST,
        store_host=HOST,
        unique_ids=[f"{number:06}{i:04}".encode() for i in range(count)],
        keys=[f"k-{i % 7}" for i in range(count)],
    )


def streamed(root: Path, *, pages: bool) -> tuple[dict[str, bytes], int]:
    """Files of log, queues and index after batches of all sizes, and how often pages were made."""
    rng, in_time = random.Random(11), 0
    new_store(root, CONFIG)
    with open_store(root, CONFIG, clock=Ticking(step=0), exclusive=True) as store:
        appender = store._appender
        appender._windows._makes_pages = pages
        appender._windows._seconds = lambda: 0.0
        appender.one._makes_pages = pages
        appender.index._windows._makes_pages = pages
        for number in range(1_000):
            store.put(column(number, rng))
            in_time += wait_for_pages(store)
        queues = [
            file for files in appender.queues.opened.values() for file in files.opened.values()
        ]
        others = [*queues, appender.index._current()]
        assert len(others) == 3
        assert all((file is not None and file.pages is not None) is pages for file in others)
        if pages:
            assert all(file.ready_to > 30 * mmap.PAGESIZE for file in others if file is not None)
    found = {}
    for folder in ("commitlog", "consumequeue/T/0", "consumequeue/T/1", "index"):
        for place, path in enumerate(sorted((root / folder).iterdir())):
            found[f"{folder}/{place}"] = path.read_bytes()
    return found, in_time


def wait_for_pages(store: MessageStore) -> bool:
    """Give the thread the time it needs where windows are so small; whether it did something."""
    file = store._appender.log.find(store.log_end)
    if file is None or file.pages is None:
        return False
    position = store.log_end - file.file_from_offset
    if made_to(file, position) == position:  # it begins later, in a piece or two
        return False
    made(file, position, file.reserved_to)
    return True


@pytest.mark.slow
@pytest.mark.usefixtures("small_windows")
def test_a_store_has_the_same_bytes_with_and_without(tmp_path: Path) -> None:
    without, _ = streamed(tmp_path / "without", pages=False)
    found, in_time = streamed(tmp_path / "with", pages=True)
    assert len(without) > 5
    assert found == without
    assert in_time > 20
    with StoreView.open(tmp_path / "with") as view:
        assert fsck(view).findings == []


def test_each_put_that_is_synced_makes_its_own(tmp_path: Path) -> None:
    config = sync_flush(CONFIG)
    with open_store(new_store(tmp_path / "store", config), config) as store:
        assert not store._appender._windows._makes_pages
