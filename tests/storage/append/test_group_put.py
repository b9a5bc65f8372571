"""Threads whose messages are to be on the device: one appends and syncs for all that wait."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from storage.append import group_put
from storage.config import FlushDiskType, StoreConfig
from storage.errors import (
    CorruptFileError,
    InvalidMessageError,
    RocketMQError,
    StoreBrokenError,
    StoreNotWritableError,
)
from storage.files.fs import FileSystem
from storage.format.encode import MessageInner
from storage.format.names import file_name
from storage.results import PutMessageResult, PutMessageStatus
from storage.store import MessageStore, now_ms
from tests.support.broken_off import broken_off

LONG_S = 30.0
HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))


def message(body: bytes, topic: str = "T") -> MessageInner:
    return MessageInner(topic, 0, body, b"", 1, HOST, HOST)


class Device(FileSystem):
    """Syncs of the log, once ``held`` is set, begin and end when the test says so."""

    def __init__(self) -> None:
        self.held = False
        self.syncs = 0
        self.refused = ""
        """The topic of which no file can be opened."""
        self.error: OSError | None = None
        self.begun = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self._logs: set[int] = set()

    def open(self, path: Path, *, writable: bool, create: bool = False) -> int:
        if self.refused and self.refused in path.parts:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        fd = super().open(path, writable=writable, create=create)
        (self._logs.add if path.parent.name == "commitlog" else self._logs.discard)(fd)
        return fd

    def sync(self, fd: int) -> None:
        if self.held and fd in self._logs:
            self.syncs += 1
            self.begun.release()
            assert self.ended.acquire(timeout=LONG_S)
            if self.error is not None:
                raise self.error
        super().sync(fd)


class Clock:
    """The machine's; ``interrupt`` has the call after so many others raise."""

    def __init__(self) -> None:
        self.interrupt = -1

    def __call__(self) -> int:
        self.interrupt -= 1
        if self.interrupt == 0:
            raise KeyboardInterrupt
        return now_ms()


class Put:
    """A putting thread; ``over`` gives the result, or what was raised."""

    def __init__(self, store: MessageStore, what: MessageInner) -> None:
        self._result: PutMessageResult | BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(store, what))
        self._thread.start()

    def _run(self, store: MessageStore, what: MessageInner) -> None:
        try:
            self._result = store.put_message(what)
        except (RocketMQError, KeyboardInterrupt) as error:
            self._result = error

    def over(self) -> PutMessageResult | BaseException | None:
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()
        return self._result

    def result(self) -> PutMessageResult:
        result = self.over()
        assert isinstance(result, PutMessageResult), result
        return result

    def status(self) -> PutMessageStatus:
        return self.result().status


def until(condition: Callable[[], bool]) -> None:
    """Wait for another thread to get somewhere."""
    pause = threading.Event()
    for _ in range(30_000):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it never happened")


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(root: Path, device: Device, clock: Clock, timeout_ms: int) -> MessageStore:
    config = StoreConfig(
        flush_disk_type=FlushDiskType.SYNC_FLUSH,
        sync_flush_timeout_ms=timeout_ms,
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=20_000,
    )
    MessageStore.create(root, config)
    store = MessageStore.open(root, config, fs=device, clock=clock)
    store.put_message(message(b"first"))
    device.held = True
    return store


@pytest.fixture
def store(tmp_path: Path, device: Device, clock: Clock) -> Iterator[MessageStore]:
    with opened(tmp_path / "store", device, clock, 60_000) as store:
        yield store
        device.held = False


def left(store: MessageStore, count: int) -> bool:
    assert store._group_put is not None
    return store._group_put.waiting == count


def first_and(store: MessageStore, device: Device, *others: MessageInner) -> tuple[Put, list[Put]]:
    """Begin a sync, and leave messages while it runs."""
    first = Put(store, message(b"leads"))
    assert device.begun.acquire(timeout=LONG_S)
    puts = []
    for number, other in enumerate(others):
        puts.append(Put(store, other))
        until(partial(left, store, number + 1))
    return first, puts


def bodies(store: MessageStore) -> list[bytes]:
    count = store.view.max_offset_in_queue("T", 0)
    found = [store.view.get_message("T", 0, offset, 1).messages[0] for offset in range(count)]
    return [one.body for one in found]


def test_what_is_left_while_a_sync_runs_is_stored_in_order_and_has_one_sync(
    store: MessageStore, device: Device
) -> None:
    first, others = first_and(store, device, *(message(b"%d" % n) for n in range(5)))
    end = store.log_end
    device.ended.release()
    assert first.status() is PutMessageStatus.PUT_OK
    assert device.begun.acquire(timeout=LONG_S)
    assert store.log_end > end
    device.ended.release()
    assert [other.result().status for other in others] == [PutMessageStatus.PUT_OK] * 5
    assert [other.result().queue_offsets[0] for other in others] == [2, 3, 4, 5, 6]
    assert bodies(store) == [b"first", b"leads", b"0", b"1", b"2", b"3", b"4"]
    assert device.syncs == 2


def test_no_put_is_answered_before_a_sync_that_covers_it(
    store: MessageStore, device: Device
) -> None:
    first, (other,) = first_and(store, device, message(b"x"))
    device.ended.release()
    first.status()
    assert device.begun.acquire(timeout=LONG_S)  # the other one's message is in, its sync runs
    assert other._result is None
    device.ended.release()
    assert other.status() is PutMessageStatus.PUT_OK


def test_a_message_that_can_not_be_stored_is_its_own_threads_trouble(
    store: MessageStore, device: Device
) -> None:
    wrong = message(b"x", topic="x" * 300)
    first, others = first_and(store, device, message(b"a"), wrong, message(b"b"))
    device.ended.release()
    assert device.begun.acquire(timeout=LONG_S)
    device.ended.release()
    assert first.status() is others[0].status() is others[2].status() is PutMessageStatus.PUT_OK
    assert isinstance(others[1].over(), InvalidMessageError)
    assert bodies(store) == [b"first", b"leads", b"a", b"b"]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("why", ["link to none", "other length", "too many open"])
def test_a_queue_that_can_not_be_opened_is_its_own_threads_trouble(
    store: MessageStore, device: Device, why: str, place: int
) -> None:
    """Whichever thread leads the group: what is stored is not called unknown, or not stored."""
    folder = store.root / "consumequeue" / "Other" / "0"
    if why == "link to none":
        folder.parent.symlink_to("nowhere")
    elif why == "other length":
        folder.mkdir(parents=True)
        (folder / file_name(0)).write_bytes(bytes(10))
    else:
        with MessageStore.open(store.root) as beside:
            beside.put_message(message(b"x", topic="Other"))
        device.refused = "Other"
    messages = [message(b"a"), message(b"b")]
    messages.insert(place, message(b"x", topic="Other"))
    first, others = first_and(store, device, *messages)
    device.ended.release()
    assert device.begun.acquire(timeout=LONG_S)
    device.ended.release()
    stored = [first, *others[:place], *others[place + 1 :]]
    assert [one.status() for one in stored] == [PutMessageStatus.PUT_OK] * 3
    expected = CorruptFileError if why == "other length" else StoreNotWritableError
    assert isinstance(others[place].over(), expected)
    assert bodies(store) == [b"first", b"leads", b"a", b"b"]
    device.refused, device.held = "", False
    assert store.put_message(message(b"later")).status is PutMessageStatus.PUT_OK


def test_a_sync_that_fails_fails_for_all_whom_it_should_have_covered(
    store: MessageStore, device: Device
) -> None:
    first, others = first_and(store, device, message(b"a"), message(b"b"))
    device.ended.release()
    assert first.status() is PutMessageStatus.PUT_OK
    assert device.begun.acquire(timeout=LONG_S)
    device.error = OSError(5, "gone")
    for _ in range(3):
        device.ended.release()
    assert [type(other.over()) for other in others] == [StoreBrokenError, StoreBrokenError]
    with pytest.raises(StoreBrokenError):
        store.put_message(message(b"later"))
    device.error = None


def test_a_put_that_waits_too_long_for_the_device_says_so_and_its_message_is_there(
    tmp_path: Path, device: Device, clock: Clock
) -> None:
    with opened(tmp_path / "store", device, clock, 20) as store:
        first = Put(store, message(b"leads"))
        assert device.begun.acquire(timeout=LONG_S)
        late = Put(store, message(b"late"))
        assert late.status() is PutMessageStatus.FLUSH_DISK_TIMEOUT
        assert bodies(store) == [b"first", b"leads", b"late"]
        device.ended.release()
        assert first.status() is PutMessageStatus.FLUSH_DISK_TIMEOUT
        device.held = False
        store.put_message(message(b"then"))  # in time if the machine is quick enough
        assert bodies(store)[-1] == b"then"


@pytest.mark.parametrize("at", [1, 2, 3])
def test_where_the_one_who_is_at_it_is_interrupted_the_others_go_on(
    store: MessageStore, device: Device, clock: Clock, at: int
) -> None:
    first, others = first_and(store, device, *(message(b"%d" % n) for n in range(3)))
    clock.interrupt = at
    device.held = False
    device.ended.release()
    first.status()
    results = [other.over() for other in others]
    assert isinstance(results[0], KeyboardInterrupt)
    told = [None, StoreBrokenError, StoreBrokenError][at - 1]
    for number, result in enumerate(results[1:], 2):
        if told is not None and number == at:
            assert isinstance(result, told)
        else:
            assert isinstance(result, PutMessageResult)
            assert result.status is PutMessageStatus.PUT_OK
    stored = bodies(store)
    assert len(stored) == len(set(stored))
    answered = {
        b"%d" % n for n, result in enumerate(results) if isinstance(result, PutMessageResult)
    }
    assert answered <= set(stored)
    assert store.put_message(message(b"then")).status is PutMessageStatus.PUT_OK


def test_many_threads_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    config = StoreConfig(flush_disk_type=FlushDiskType.SYNC_FLUSH)
    MessageStore.create(tmp_path / "store", config)
    with MessageStore.open(tmp_path / "store", config) as store:
        puts: list[list[PutMessageResult]] = [[] for _ in range(8)]

        def work(thread: int) -> None:
            for number in range(25):
                puts[thread].append(store.put_message(message(b"%d %d" % (thread, number))))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stored = bodies(store)
        told = {
            result.queue_offsets[0]: b"%d %d" % (thread, number)
            for thread, results in enumerate(puts)
            for number, result in enumerate(results)
        }
    assert [told[offset] for offset in range(200)] == stored


class Crowd(Device):
    """While the first sync runs others come. Puts the first message into a new store."""

    def __init__(self, root: Path, count: int) -> None:
        super().__init__()
        self._count = count
        self.others: list[Put] = []
        config = StoreConfig(
            flush_disk_type=FlushDiskType.SYNC_FLUSH,
            sync_flush_timeout_ms=5000,  # above what a busy device takes for one sync
            mapped_file_size_commit_log=1 << 20,
            mapped_file_size_consume_queue=20_000,
        )
        MessageStore.create(root, config)
        self.store = MessageStore.open(root, config, fs=self)
        self.come = True

    def put(self) -> None:
        self.store.put_message(message(b"first"))

    def sync(self, fd: int) -> None:
        if self.come and fd in self._logs:
            self.come = False
            self.others = [Put(self.store, message(b"other %d" % n)) for n in range(self._count)]
            until(partial(left, self.store, self._count))
        super().sync(fd)


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 2], ids=["alone", "others wait"])
def test_after_a_signal_at_any_instant_puts_go_on(tmp_path: Path, count: int) -> None:
    crowd = Crowd(tmp_path / "0", count)
    instants = 0
    for number in broken_off(lambda: crowd.put(), group_put):  # noqa: B023 - the present one
        crowd.come = False
        told = [other.over() for other in crowd.others]
        store = crowd.store
        assert store.put_message(message(b"then")).status is PutMessageStatus.PUT_OK
        assert store._group_put is not None
        assert store._group_put._leader is None, "somebody else is thought to be at it"
        stored = bodies(store)
        assert len(stored) == len(set(stored))
        assert stored[-1] == b"then"
        answered = sum(isinstance(result, PutMessageResult) for result in told)
        assert answered <= sum(body.startswith(b"other") for body in stored)
        store.close()
        instants += 1
        crowd = Crowd(tmp_path / str(number + 1), count)
    assert instants > 20
    crowd.store.close()
