"""Puts that the compiled form does in one step: beside threads, other openings and waiters."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import FrameType

import pytest

from storage.append.append import Appender
from storage.append.fast_append import FastAppender
from storage.errors import StoreBrokenError
from storage.format.encode import prepare
from storage.readonly import StoreView
from storage.results import PutMessageResult, PutMessageStatus
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.samples import SMALL, Sample, Ticking, new_store, open_store
from tests.support.woken import is_rung_by

ROOMY = SMALL.with_(
    mapped_file_size_commit_log=1 << 20,
    mapped_file_size_consume_queue=20 * 4000,
    max_index_num=100_000,
)
PURE = (FastAppender.append.__code__, Appender.append.__code__)
pytestmark = needs_compiled


@pytest.fixture(autouse=True)
def with_compiled_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled)


def put_alone(store: MessageStore, name: str) -> bool:
    """Whether the compiled form alone puts it."""
    assert store._put_alone is not None
    return store._put_alone(Sample(name, "T").inner()) is not None


def test_what_is_stored_does_not_fail_while_another_thread_has_the_turn(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    held, done = threading.Event(), threading.Event()
    with open_store(root, ROOMY, gate_timeout_ms=20) as store:

        def hold() -> None:
            with store.write_lock():
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        try:
            store._write_lock.give_up()
        finally:
            done.set()
            thread.join()


def test_it_puts_the_first_message_of_a_millisecond_too(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    appended: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in PURE:
            appended.append(frame.f_code.co_name)

    with open_store(root, ROOMY, clock=Ticking(step=1)) as store:
        for number in range(4):  # what they make and learn is the pure form's affair
            store.put_message(Sample(f"{number}", "T").inner())
        sys.setprofile(note)
        try:
            results = [store.put_message(Sample(f"{n}", "T").inner()) for n in range(4, 8)]
        finally:
            sys.setprofile(None)
    assert [result.queue_offsets[0] for result in results] == [4, 5, 6, 7]
    assert appended == []


@pytest.mark.parametrize("exclusive", [True, False])
def test_threads_that_put_at_once_get_places_of_their_own(tmp_path: Path, exclusive: bool) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    places: list[tuple[int, int]] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with open_store(root, ROOMY, clock=Ticking(step=0), exclusive=exclusive) as store:

            def run(name: int) -> None:
                for number in range(1200):
                    result = store.put_message(Sample(f"{name}-{number}", "T").inner())
                    places.append((result.commitlog_offsets[0], result.queue_offsets[0]))

            threads = [threading.Thread(target=run, args=(name,)) for name in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(offset for _, offset in places) == list(range(4800))
            assert [offset for _, offset in sorted(places)] == list(range(4800))
    finally:
        sys.setswitchinterval(interval)
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("T", 0) == 4800
        assert fsck(view).findings == []


def test_it_puts_only_while_the_gate_is_held_on_to(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking(step=0), exclusive=True) as store:
        for number in range(4):
            store.put_message(Sample(f"{number}", "T").inner())
        assert put_alone(store, "a")
        with store.write_lock():
            assert not put_alone(store, "b"), "somebody has the turn"
        assert put_alone(store, "c")
    assert not put_alone(store, "d"), "it is closed"
    with open_store(root, ROOMY, clock=Ticking(step=0)) as store:
        store.put_message(Sample("e", "T").inner())
        store.put_message(Sample("f", "T").inner())
        if not store._write_lock.holding:
            assert not put_alone(store, "g")


def test_who_waits_is_rung(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking(step=0), exclusive=True) as store:
        for number in range(4):
            store.put_message(Sample(f"{number}", "T").inner())
        assert is_rung_by(store, lambda: put_alone(store, "a"))


def test_a_topic_of_an_enum_is_stored_and_who_waits_is_rung(tmp_path: Path) -> None:
    class Topics(StrEnum):
        T = "T"

    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking(step=0), exclusive=True) as store:
        for number in range(4):
            store.put_message(Sample(f"{number}", "T").inner())
        message = Sample("a", Topics.T).inner()
        assert is_rung_by(store, lambda: store.put_message(message).status.stored)
        assert store.view.max_offset_in_queue("T", 0) == 5


@pytest.mark.slow
def test_a_store_without_references_is_released(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    store = open_store(root, ROOMY, clock=Ticking(step=0), exclusive=True)
    for number in range(4):
        store.put_message(Sample(f"{number}", "T").inner())
    known = weakref.ref(store._appender)
    store.close()
    del store
    gc.collect()
    assert known() is None


@pytest.mark.parametrize("at_once", [1, 50])
def test_a_log_file_that_is_gone_in_a_run_is_missed_in_the_next_millisecond(
    tmp_path: Path, at_once: int
) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    clock = Ticking(step=0)

    def put(store: MessageStore, first: int) -> PutMessageResult:
        messages = [Sample(f"m{first + i}", "T").inner() for i in range(at_once)]
        return store.put(prepare(messages)) if at_once > 1 else store.put_message(messages[0])

    store = open_store(root, ROOMY, clock=clock, exclusive=True)
    for first in range(0, 1500, at_once):
        clock.now += 1
        assert put(store, first).status is PutMessageStatus.PUT_OK
    assert store._appender.one.in_run
    clock.now += 1
    assert put(store, 1500).store_timestamp == clock.now  # it is checked, and there
    max((root / "commitlog").iterdir()).unlink()
    clock.now += 1
    with pytest.raises(StoreBrokenError, match="was deleted while it was being written"):
        put(store, 1600)
    with suppress(StoreBrokenError):
        store.close()
