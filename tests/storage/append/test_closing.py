"""A process holds nothing of a store that it has closed, without the garbage collector."""

from __future__ import annotations

import errno
import gc
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from storage import session as session_module, store as store_module
from storage.config import FlushDiskType
from storage.coordination.locks import LockFile
from storage.errors import RocketMQError, StoreClosedError
from storage.files.fs import FileSystem
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.broken_off import broken_off
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.crash import inspect
from tests.support.samples import SMALL, START_MS, Sample, new_store, prepared


@pytest.fixture(autouse=True)
def no_garbage_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(params=[pytest.param("compiled", marks=needs_compiled), "pure"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled if request.param == "compiled" else None)


def held(root: Path) -> list[str]:
    """Files of a store that this process has mapped or open, by the kernel's word."""
    found = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(root) in line]
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own
            found.append(str(descriptor.readlink()))
    return [line.split()[-1] for line in found if str(root) in line]


def fill(store: MessageStore) -> None:
    for number in range(100):
        store.put_message(Sample(f"one-{number}", "T", keys=("k",)).inner())
    store.put(prepared([Sample(f"many-{number}", "T", number % 2) for number in range(100)]))


@pytest.mark.slow
@pytest.mark.parametrize("flush", list(FlushDiskType))
@pytest.mark.usefixtures("form")
def test_a_closed_store_holds_none_of_its_files(tmp_path: Path, flush: FlushDiskType) -> None:
    root = new_store(tmp_path / "s", SMALL.with_(flush_disk_type=flush))
    with MessageStore.open(root) as store:
        fill(store)
        assert store.view.get_message("T", 0, 0, 32).messages
        assert store.view.query_message("T", "k").messages
        assert f"{root}/rmqctl/shared" in held(root)
    assert held(root) == []


@pytest.mark.slow
@pytest.mark.usefixtures("form")
def test_a_check_holds_nothing_after_it(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", SMALL)
    with MessageStore.open(root) as store:
        fill(store)
    with StoreView.open(root) as view:
        assert fsck(view).checked.index_entries == 300
    assert held(root) == []


@pytest.mark.slow
@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("flush", list(FlushDiskType))
def test_threads_that_put_when_it_is_closed_hear_that_it_is(
    tmp_path: Path, flush: FlushDiskType
) -> None:
    root = new_store(tmp_path / "s", SMALL.with_(flush_disk_type=flush))
    stored = [0] * 4
    raised: list[type[Exception]] = []

    def put_until_closed(number: int) -> None:
        message = Sample(f"of-{number}", "T").inner()
        try:
            while True:
                store.put_message(message)
                stored[number] += 1
                started.release()
        except Exception as error:  # noqa: BLE001 - of whatever kind, which is checked below
            raised.append(type(error))

    for _ in range(5):
        raised.clear()
        started = threading.Semaphore(0)
        store = MessageStore.open(root)
        threads = [threading.Thread(target=put_until_closed, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            assert started.acquire(timeout=60)
        store.close()
        for thread in threads:
            thread.join()
        assert raised == [StoreClosedError] * 4
    with StoreView.open(root) as view:
        assert view.bounds.next_offset("T", 0) == sum(stored)


@pytest.mark.slow
@needs_compiled
def test_the_compiled_form_does_nothing_after_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    message = Sample("late", "T").inner()
    root = new_store(tmp_path / "s", SMALL)
    store = MessageStore.open(root, exclusive=True, clock=lambda: START_MS)
    fill(store)
    store.put_message(message)  # looks for the log file, once for this millisecond
    appending = store._appender.one.compiled
    put, append = appending.put, appending.append
    assert put(message) is not None
    end = store.log_end
    store.close()
    appending.end()  # once more is fine
    assert put(message) is None
    assert append(message, START_MS) is None
    with StoreView.open(root) as view:
        assert view.bounds.log_end() == end


@pytest.mark.slow
@pytest.mark.parametrize("exclusive", [False, True], ids=["shared", "exclusive"])
def test_what_a_signal_breaks_off_a_second_closing_does(tmp_path: Path, exclusive: bool) -> None:
    def opened(number: int) -> MessageStore:
        root = new_store(tmp_path / str(number), SMALL)
        store = MessageStore.open(root, exclusive=exclusive)
        store.put_message(Sample("m", "T", keys=("k",)).inner())
        return store

    store = opened(0)
    instants = 0
    for number in broken_off(lambda: store.close(), store_module, session_module):  # noqa: B023
        store.close()
        assert held(store.root) == []
        rival = LockFile(store.root / "lock")
        assert rival.try_lock(0, 2), "nobody is in"
        rival.close()
        with MessageStore.open(store.root) as again:
            assert again.view.max_offset_in_queue("T", 0) == 1
        assert inspect(store.root, SMALL).problems == []
        instants += 1
        store = opened(number + 1)
    assert instants > 20


@pytest.mark.slow
def test_an_index_that_gets_no_blocks_costs_no_descriptor(tmp_path: Path) -> None:
    class Full(FileSystem):
        is_full = False

        def reserve(self, fd: int, start: int, size: int) -> None:
            if self.is_full and "/index/" in str(Path(f"/proc/self/fd/{fd}").readlink()):
                raise OSError(errno.ENOSPC, "No space left on device")
            super().reserve(fd, start, size)

    root, fs = new_store(tmp_path / "s", SMALL), Full()
    with MessageStore.open(root) as store:
        store.put_message(Sample("m", "T", keys=("k",)).inner())
    for number in range(3):
        fs.is_full = True
        with suppress(RocketMQError, OSError), MessageStore.open(root, fs=fs) as store:
            store.put_message(Sample(f"n{number}", "T", keys=("k",)).inner())
        fs.is_full = False
        assert [name for name in held(root) if "/index/" in name] == []
    with MessageStore.open(root) as store:
        store.put_message(Sample("o", "T", keys=("k",)).inner())
    assert inspect(root, SMALL).problems == []
