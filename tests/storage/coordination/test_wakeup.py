"""Waiting processes are woken; timed services run in one process and move on when it dies."""

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.coordination import wakeup
from storage.coordination.leadership import TimedServices
from storage.coordination.locks import LockFile
from storage.coordination.shared_state import WAITER_FLAGS
from storage.coordination.wakeup import (
    LONGEST_SLEEP_MS,
    Notifier,
    Waker,
    slots_path,
    topics_word,
)
from storage.files.fs import FileSystem
from storage.store import MessageStore
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.crash import idle_child
from tests.support.samples import TINY, Sample, new_store, open_store, prepared
from tests.support.tries import best_below

WAITER = """
import sys
from pathlib import Path
from storage.store import MessageStore
with MessageStore.open(Path(sys.argv[1])) as store:
    end = store.log_end
    print("ready", flush=True)
    for line in sys.stdin:
        if store.log_end == end:
            end = store.wait(end, 30_000, line.split() or None)
        else:
            end = store.log_end
        print(end, flush=True)
"""


FORMS = [pytest.param(compiled, marks=needs_compiled, id="compiled"), pytest.param(None, id="pure")]


@pytest.fixture(params=FORMS)
def either_form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Wakers that are words, then wakers that are sockets; whether they are sockets."""
    monkeypatch.setattr(native, "compiled", request.param)
    return not wakeup.has_futex_wakers()


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", None)


@contextmanager
def waiter(root: Path, pure: str = "") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", WAITER, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "RMQCTL_PURE": pure},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.usefixtures("either_form")
@pytest.mark.parametrize("pure", ["", "1"], ids=["compiled waits", "pure waits"])
@pytest.mark.slow
def test_a_sleeping_process_is_woken_by_a_put_in_another(tmp_path: Path, pure: str) -> None:
    root = new_store(tmp_path / "s", TINY)
    started = time.monotonic()
    with waiter(root, pure) as process, open_store(root) as store:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(200):
            process.stdin.write("A\n")
            process.stdin.flush()
            store.put(prepared([Sample(f"m{number}", "A")]))
            while int(process.stdout.readline()) < store.log_end:
                process.stdin.write("A\n")
                process.stdin.flush()
    assert time.monotonic() - started < 60, "it slept for a second each time"


@pytest.mark.usefixtures("sockets")
def test_a_bell_that_can_not_be_rung_fails_no_put(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as store:
        waker = Waker.take(FileSystem(), store._session.shared, root)
        assert waker is not None
        path = root / "rmqctl" / "bells" / "0"
        path.unlink()
        path.symlink_to(path)  # as if it were another user's, which root does not mind
        for number in range(2):
            waker.arm(None)
            assert store.put(prepared([Sample(f"m{number}", "A")])).queue_offsets[0] == number
        waker.close()


@pytest.mark.usefixtures("either_form")
def test_only_waiters_for_the_topic_are_rung(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as store:
        shared = store._session.shared
        first = Waker.take(FileSystem(), shared, root)
        second = Waker.take(FileSystem(), shared, root)
        third = Waker.take(FileSystem(), shared, root)
        assert first is not None
        assert second is not None
        assert third is not None
        first.arm(["A"])
        second.arm(["B", "C"])
        third.arm(None)
        ringer = Notifier(shared, root)

        ringer.notify({"A"})

        assert first.sleep(1000)
        assert third.sleep(1000)
        assert not second.sleep(0)
        for waker in (first, second, third):
            waker.close()
        ringer.close()


def test_a_dead_waiters_slot_is_taken_over(tmp_path: Path, either_form: bool) -> None:
    root = new_store(tmp_path / "s", TINY)
    with waiter(root) as process, open_store(root) as store:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        shared = store._session.shared
        deadline = time.monotonic() + 20
        while not shared.map[4096] and time.monotonic() < deadline:
            os.sched_yield()
        assert shared.map[4096]
        process.kill()
        process.wait()
        store.put(prepared([Sample("m", "A")]))  # wakes a dead process: no harm

        waker = Waker.take(FileSystem(), shared, root)

        assert waker is not None
        assert (root / "rmqctl/bells/0").exists() == either_form
        assert not LockFile(slots_path(shared.path)).try_lock(WAITER_FLAGS), "it has another slot"
        waker.arm(None)
        store.put(prepared([Sample("n", "A")]))
        assert waker.sleep(1000)
        waker.close()


@pytest.mark.usefixtures("either_form")
def test_who_has_a_slot_next_is_rung_as_its_owner_was(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as store:
        ringer = Notifier(store._session.shared, root)
        for _ in range(3):
            waker = Waker.take(FileSystem(), store._session.shared, root)
            assert waker is not None
            for _ in range(2):
                waker.arm(["A"])
                ringer.notify({"A"})
                assert waker.sleep(1000)
            waker.close()
        ringer.close()


def test_a_forked_child_does_not_keep_the_bell_of_a_slot(tmp_path: Path, either_form: bool) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as store:
        shared = store._session.shared
        ringer = Notifier(shared, root)
        first = Waker.take(FileSystem(), shared, root)
        assert first is not None
        first.arm(None)
        ringer.notify(None)
        with idle_child():
            first.close()
            second = Waker.take(FileSystem(), shared, root)
            assert second is not None
            assert (root / "rmqctl" / "bells" / "0").exists() == either_form
            assert not LockFile(slots_path(shared.path)).try_lock(WAITER_FLAGS), (
                "it has another slot"
            )
            second.arm(None)
            ringer.notify(None)
            assert second.sleep(1000)
            second.close()
        ringer.close()


@pytest.mark.usefixtures("either_form")
def test_what_rang_before_a_sleep_does_not_end_it(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as store:
        waker = Waker.take(FileSystem(), store._session.shared, root)
        assert waker is not None
        for _ in range(3):
            waker.wake()
        waker.arm(None)
        assert not waker.sleep(0)
        waker.wake()
        assert waker.sleep(1000)
        waker.close()


@pytest.mark.usefixtures("either_form")
@pytest.mark.slow
def test_no_bell_is_lost_between_looking_and_sleeping(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as writer, open_store(root) as reader:
        rounds = 300
        lost = []
        waker = Waker.take(FileSystem(), reader._session.shared, root)
        assert waker is not None

        def follow() -> None:
            seen = 0
            while seen < rounds:
                waker.arm(["A"])
                there = reader.view.max_offset_in_queue("A", 0)
                if there == seen and not waker.sleep(LONGEST_SLEEP_MS):
                    there = reader.view.max_offset_in_queue("A", 0)
                    # Without a wakeup, not even one that came after the sleep, as it did.
                    if there > seen and not waker.sleep(LONGEST_SLEEP_MS):
                        lost.append(seen)
                waker.disarm()
                seen = there

        thread = threading.Thread(target=follow)
        thread.start()
        for number in range(rounds):
            writer.put(prepared([Sample(f"m{number}", "A")]))
        thread.join(60)
        assert not thread.is_alive()
        assert lost == []
        waker.close()


def test_every_topic_has_a_bit_of_the_word_for_any() -> None:
    everything = topics_word(None)
    for number in range(1000):
        word = topics_word([f"t{number}"])
        assert word & everything == word > 0
    assert topics_word(["A", "B"]) == topics_word(["A"]) | topics_word(["B"])
    assert topics_word([]) == 0
    assert everything < 1 << 63  # a signed word


@pytest.mark.usefixtures("either_form")
def test_a_sleeper_is_woken_by_its_own_process(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as store:

        def wake_twice() -> float:
            started = time.monotonic()
            store.wake()  # also if it comes first, and before there is a waker
            store.wait(store.log_end, 5_000)
            store.wait(store.log_end, 1)
            thread = threading.Thread(target=store.wait, args=(store.log_end, 5_000))
            thread.start()
            threading.Event().wait(0.05)  # let it fall asleep; either order must work
            store.wake()
            thread.join(5)
            return time.monotonic() - started

        best_below(LONGEST_SLEEP_MS / 1000, wake_twice)


def test_services_run_in_one_process_and_move_on_when_it_dies(tmp_path: Path) -> None:
    (tmp_path / "rmqctl").mkdir()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        services = TimedServices(tmp_path)
        services.add(lambda: os.write(write_end, b"ran"), interval_ms=0, first_ms=0)
        services.tick()
        signal.pause()
    assert os.read(read_end, 3) == b"ran"
    ran = []
    services = TimedServices(tmp_path)
    services.add(lambda: ran.append(1), interval_ms=0, first_ms=0)
    services.tick()
    assert not services.elected
    assert ran == []

    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    deadline = time.monotonic() + 20  # the kernel releases the lock about a millisecond later
    while not ran and time.monotonic() < deadline:
        services.tick()

    assert ran == [1]
    services.close()
    os.close(read_end)
    os.close(write_end)


def test_a_failing_service_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "rmqctl").mkdir()
    ran = []

    def fail() -> None:
        raise OSError("no luck")

    services = TimedServices(tmp_path)
    services.add(fail, interval_ms=0, first_ms=0)
    services.add(lambda: ran.append(1), interval_ms=0, first_ms=0)
    services.tick()
    assert ran == [1]
    assert [str(error) for _, error in services.failures] == ["no luck"]
    services.close()


def test_a_service_that_fails_unexpectedly_is_logged_once_and_runs_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "rmqctl").mkdir()
    ran = []

    def fail() -> None:
        ran.append(1)
        raise struct.error("unpack requires a buffer of 20 bytes")

    services = TimedServices(tmp_path)
    services.add(fail, interval_ms=0, first_ms=0)
    for _ in range(3):
        services.tick()
    assert len(ran) == len(services.failures) == 3
    [record] = caplog.records
    assert "unpack requires a buffer of 20 bytes" in record.getMessage()
    services.close()


def test_a_put_through_one_opening_is_seen_by_the_view_of_another(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", TINY)
    with open_store(root) as writer, MessageStore.open(root, TINY) as other:
        assert other.view.max_offset_in_queue("A", 0) == 0
        writer.put(prepared([Sample("m", "A")]))
        assert other.view.max_offset_in_queue("A", 0) == 1
        assert other.view.get_message("A", 0, 0, 1).messages[0].body == Sample("m", "A").body()
