"""Cutting the power at every sync of a workload, and opening what the device then holds.

Runs in a slim interpreter (tests.support.slim).
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread, current_thread
from traceback import format_exc

from storage.config import FlushDiskType, StoreConfig
from storage.errors import CorruptFileError
from storage.read.tag_filter import TagFilter
from storage.readonly import StoreView
from storage.results import PutMessageResult
from tests.support.crash import Acknowledged, Put, inspect, missing
from tests.support.durable_fs import DurableFileSystem
from tests.support.every_instant import LATER, PROBES, lose_page
from tests.support.samples import (
    SMALL,
    TINY,
    Sample,
    Ticking,
    batch,
    new_store,
    open_store,
    prepared,
    sync_flush,
)
from tests.support.watched_fs import Instant, WatchedFileSystem
from tests.support.workloads import SINGLES, make_next_file, run_puts

CONFIG = sync_flush(TINY.with_(mapped_file_size_commit_log=8 << 10))
PUTS = [
    *SINGLES,
    *(Put([Sample(f"more-{i}", "A", i % 2, size=80, keys=("k",))]) for i in range(24)),
    Put(batch("many", 30, "D", (0, 1), size=90)),
    Put([Sample("end", "B", 3)]),
]


OF_SECTORS = sync_flush(SMALL)
LONG_QUEUES = [
    Put([Sample(f"long-{i}", "A", i % 2, size=30 + i % 50, tags="xyz"[i % 3], keys=("k",))])
    for i in range(330)
] + [Put(batch(f"some-{i}", 20, "B", (0,), size=60)) for i in range(20)]


def cut_at_every_sync(folder: str, shard: int, shards: int, seed: int) -> dict[str, object]:
    """SYNC_FLUSH: everything that was acknowledged before the cut is there after it."""
    chance = random.Random(seed)
    root = new_store(Path(folder) / f"sync-{shard}", CONFIG)
    acknowledged: list[Acknowledged] = []
    failures: list[str] = []
    cuts = 0

    def cut(what: str) -> None:
        nonlocal cuts
        cuts += 1
        if cuts % shards != shard or len(failures) > 20:
            return
        for share in (None, 0.0, 0.5, 0.9, 1.0):
            buffer = Path(folder) / f"image-{shard}"
            fs.buffer(buffer, None if share is None else chance, share or 0)
            try:
                problems = judge(buffer, CONFIG, acknowledged, torn=bool(share))
            except Exception:  # noqa: BLE001 - a store that cannot be opened is a finding as well
                problems = [format_exc(limit=-4)]
            failures.extend(f"cut {cuts}, {what}, {share} kept: {bad}" for bad in problems)
            shutil.rmtree(buffer)

    def acknowledge(number: int, result: PutMessageResult) -> None:
        _note(acknowledged, PUTS[number], result)

    fs = DurableFileSystem(root, cut)
    run_puts(root, fs, CONFIG, PUTS, acknowledge, reopen_before=5)
    fs.forget()
    return {"cuts": cuts, "failures": failures}


def cut_twice(
    folder: str, shard: int, shards: int, seed: int, *, share_of_second: float
) -> dict[str, object]:
    """SYNC_FLUSH: the power goes again while the store is recovered, or soon after."""
    chance = random.Random(seed)
    root = new_store(Path(folder) / f"twice-{shard}", CONFIG)
    acknowledged: list[Acknowledged] = []
    failures: list[str] = []
    cuts = seconds = 0

    def cut(what: str) -> None:
        nonlocal cuts, seconds
        cuts += 1
        if cuts % shards != shard or len(failures) > 20:
            return
        first = fs.buffer(Path(folder) / f"first-{shard}", chance, chance.choice((0.3, 0.7, 0.95)))
        lose_page(first)
        known = list(acknowledged)

        def cut_again(again: str) -> None:
            nonlocal seconds
            if chance.random() >= share_of_second:
                return
            seconds += 1
            for share in (None, 0.5):
                buffer = Path(folder) / f"second-{shard}"
                second.buffer(buffer, None if share is None else chance, share or 0)
                try:
                    problems = judge(buffer, CONFIG, known, torn=True)
                except Exception:  # noqa: BLE001 - a store that cannot be opened is a finding
                    problems = [format_exc(limit=-4)]
                failures.extend(f"cut {cuts}, {what}, then {again}: {bad}" for bad in problems)
                shutil.rmtree(buffer)

        second = DurableFileSystem(first, cut_again)
        store = open_store(first, CONFIG, fs=second, clock=Ticking(LATER - 1_000_000))
        for put in AFTER_DEATH:
            _note(known, put, store.put(prepared(put.samples)))
        store.close()
        second.forget()
        shutil.rmtree(first)

    def acknowledge(number: int, result: PutMessageResult) -> None:
        _note(acknowledged, PUTS[number], result)

    fs = DurableFileSystem(root, cut)
    run_puts(root, fs, CONFIG, PUTS, acknowledge, reopen_before=5)
    fs.forget()
    return {"cuts": cuts, "second_cuts": seconds, "failures": failures}


def read_first(folder: str, shard: int, shards: int, seed: int) -> dict[str, object]:
    """SYNC_FLUSH: a reader comes first after the cut. Queues span many sectors here, each of which
    the device may have or not."""
    chance = random.Random(seed)
    root = new_store(Path(folder) / f"read-{shard}", OF_SECTORS)
    acknowledged: list[Acknowledged] = []
    failures: list[str] = []
    cuts = losses = refused = 0

    def cut(what: str) -> None:
        nonlocal cuts, losses, refused
        cuts += 1
        if cuts % shards != shard or len(failures) > 20:
            return
        losses += 1
        buffer = Path(folder) / f"image-{shard}"
        fs.buffer(buffer, chance, chance.choice((0.3, 0.5, 0.8, 0.95)))
        lose_page(buffer)
        try:
            problems = unread_before_recovery(buffer, OF_SECTORS, acknowledged)
            problems += judge(buffer, OF_SECTORS, acknowledged, torn=True)
        except CorruptFileError as error:
            # The name of a new log file was lost, and units of its records were not.
            refused += 1
            problems = [] if "the queues know of messages up to" in str(error) else [str(error)]
        except Exception:  # noqa: BLE001 - a store that cannot be opened is a finding as well
            problems = [format_exc(limit=-4)]
        failures.extend(f"cut {cuts}, {what}: {bad}" for bad in problems)
        shutil.rmtree(buffer)

    def acknowledge(number: int, result: PutMessageResult) -> None:
        _note(acknowledged, LONG_QUEUES[number], result)

    fs = DurableFileSystem(root, cut)
    run_puts(root, fs, OF_SECTORS, LONG_QUEUES, acknowledge, reopen_before=90)
    fs.forget()
    return {"cuts": cuts, "losses": losses, "refused": refused, "failures": failures}


def cut_at_any_instant(folder: str, shard: int, shards: int, seed: int) -> dict[str, object]:
    """ASYNC_FLUSH: what was there when flush() or the last close() returned is there for good."""
    config = CONFIG.with_(flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    chance = random.Random(seed)
    root = new_store(Path(folder) / f"async-{shard}", config)
    acknowledged: list[Acknowledged] = []
    safe: list[Acknowledged] = []
    failures: list[str] = []

    def watch(instant: Instant) -> None:
        if instant.number % shards != shard or len(failures) > 20:
            return
        for share in (None, 0.5, 0.9):
            buffer = Path(folder) / f"image-{shard}"
            fs.buffer(buffer, None if share is None else chance, share or 0)
            try:
                problems = judge(buffer, config, safe, torn=True)
            except Exception:  # noqa: BLE001 - a store that cannot be opened is a finding as well
                problems = [format_exc(limit=-4)]
            failures.extend(f"cut at {instant}, {share} kept: {bad}" for bad in problems)
            shutil.rmtree(buffer)

    fs = _DurableWatched(root, watch)
    clock = Ticking()
    store = open_store(root, config, fs=fs, clock=clock)
    for number, put in enumerate(PUTS):
        make_next_file(store, number)
        _note(acknowledged, put, store.put(prepared(put.samples), whole=put.whole))
        if number % 4 == 2:
            store.flush()
            safe[:] = acknowledged
        if number % 10 == 7:
            store.close()
            safe[:] = acknowledged
            clock.now += 4000  # beyond the margin of the checkpoint: recovery starts later
            store = open_store(root, config, fs=fs, clock=clock)
    store.close()
    fs.forget()
    return {"instants": fs.count, "failures": failures}


class _DurableWatched(WatchedFileSystem, DurableFileSystem):
    """Sees every instant, and remembers what the device has."""

    def __init__(self, root: Path, watch: Callable[[Instant], None]) -> None:
        WatchedFileSystem.__init__(self, watch)
        DurableFileSystem.__init__(self, root)


def cut_after_a_death(folder: str, shard: int, shards: int, names_step: int) -> dict[str, object]:
    """A writer dies at an instant, another one goes on and acknowledges, then the power goes.

    Besides the shard's instants each ``names_step``-th is tried of those at which a name is about
    to be synced. The second shard begins with the second of them.
    """
    failures: list[str] = []
    instants: list[Instant] = []
    root = new_store(Path(folder) / f"dry-{shard}", CONFIG)
    fs = WatchedFileSystem(instants.append)
    run_puts(root, fs, CONFIG, SINGLES, lambda number, result: None, reopen_before=5)
    names = [one.number for one in instants if one.kind == "sync_dir"]
    numbers = {*range(1 + shard, len(instants), shards), *names[shard > 0 :: names_step]}
    for number in sorted(numbers):
        root = new_store(Path(folder) / f"death-{shard}-{number}", CONFIG)
        acknowledged: list[Acknowledged] = []
        fs, died = _die_in_a_thread(root, number, acknowledged)
        try:
            store = open_store(root, CONFIG, fs=fs, clock=Ticking(LATER - 1_000_000))
            for put in AFTER_DEATH:
                _note(acknowledged, put, store.put(prepared(put.samples)))
            buffer = fs.buffer(root.with_name(f"image-{shard}-{number}"))
            store.close()
            problems = judge(buffer, CONFIG, acknowledged, torn=False)
            shutil.rmtree(buffer)
            if number % 3 == 0:
                buffer = fs.buffer(root.with_name(f"image-{shard}-{number}"))
                problems += [
                    f"closed: {bad}" for bad in judge(buffer, CONFIG, acknowledged, torn=False)
                ]
                shutil.rmtree(buffer)
        except Exception:  # noqa: BLE001 - a store that cannot be opened is a finding as well
            problems = [format_exc(limit=-4)]
        failures += [f"killed at {number}: {bad}" for bad in problems]
        fs.forget()
        shutil.rmtree(root)
        if not died or len(failures) > 20:
            failures += [] if died else [f"instant {number} never came"]
            break
    return {"instants": len(instants), "failures": failures}


AFTER_DEATH = [
    Put([Sample("after-1", "A", keys=("k",))]),
    Put([Sample("after-2", "A", 1, size=500)]),
    Put(batch("after-3", 8, "B", (3, 4), size=250)),
    Put([Sample("after-4", "C", 2)]),
]


def _die_in_a_thread(
    root: Path, number: int, acknowledged: list[Acknowledged]
) -> tuple[_DurableWatched, bool]:
    """Run the workload in a thread that stops for good at an instant, and drop its locks.

    That is what SIGKILL does, but for the memory of what was synced, which stays here.
    """
    stopped = Event()

    def watch(instant: Instant) -> None:
        if instant.number == number and current_thread() is thread:
            stopped.set()
            Event().wait()

    def run() -> None:
        run_puts(root, fs, CONFIG, SINGLES, acknowledge, reopen_before=5)
        survived.append(True)
        stopped.set()

    def acknowledge(put: int, result: PutMessageResult) -> None:
        _note(acknowledged, SINGLES[put], result)

    survived: list[bool] = []
    fs = _DurableWatched(root, watch)
    thread = Thread(target=run, daemon=True)
    thread.start()
    stopped.wait()
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if fd.readlink() == root / "lock" and not fs.holds(int(fd.name)):
                os.close(int(fd.name))
    return fs, not survived


def _note(acknowledged: list[Acknowledged], put: Put, result: PutMessageResult) -> None:
    for sample, place, offset in zip(
        put.samples, result.commitlog_offsets, result.queue_offsets, strict=True
    ):
        acknowledged.append(Acknowledged(sample, int(place), int(offset)))


def judge(
    buffer: Path, config: StoreConfig, acknowledged: list[Acknowledged], *, torn: bool
) -> list[str]:
    """After the reboot: a reader has all, recovery runs, all is there, and the store goes on."""
    lose_page(buffer)
    unread = unread_before_recovery(buffer, config, acknowledged)
    store = open_store(buffer, config, clock=Ticking(LATER))
    problems = [] if store.recovery is not None else ["no recovery after a power loss"]
    more = []
    for probe in PROBES:
        result = store.put(prepared([probe]))
        more.append(Acknowledged(probe, result.commitlog_offsets[0], result.queue_offsets[0]))
    store.close()
    found = inspect(buffer, config, torn=torn, with_fsck=not len(acknowledged) % 4)
    return unread + problems + found.problems + missing(found, acknowledged + more)


def unread_before_recovery(
    buffer: Path, config: StoreConfig, acknowledged: list[Acknowledged]
) -> list[str]:
    """What was acknowledged and is not shown to a reader that comes before any writer: each message
    of its queue one after the other, and those of one tag."""
    with StoreView.open(buffer, config) as view:
        whole = {queue: _drain(view, *queue, None) for queue in view.queues()}
        by_tag = {
            (sample.topic, sample.queue_id, sample.tags): _drain(
                view, sample.topic, sample.queue_id, _by_tag(sample.tags)
            )
            for sample, *_ in acknowledged
            if sample.tags is not None
        }
        problems = []
        for sample, place, offset in acknowledged:
            queue = sample.topic, sample.queue_id
            there = [whole.get(queue, {}), by_tag.get((*queue, sample.tags or ""))]
            for name, messages in zip(("consume", "consume by tag"), there, strict=True):
                if messages is not None and messages.get(offset) != (place, sample.body()):
                    problems.append(f"{sample.id} at {place}: not read by {name}")
            problems += [
                f"{sample.id} at {place}: not found by its key {key}"
                for key in (sample.id, *sample.keys)
                if place not in view.key_offsets(sample.topic, key)
            ]
            if place not in {m.commitlog_offset for m in view.find_unique(sample.topic, sample.id)}:
                problems.append(f"{sample.id} at {place}: not found by its id")
    return problems


def _by_tag(tag: str) -> TagFilter | None:
    return TagFilter.parse(tag)


def _drain(
    view: StoreView, topic: str, queue_id: int, tags: TagFilter | None
) -> dict[int, tuple[int, bytes]]:
    """The messages of a queue as a consumer gets them: log offset and body by queue offset."""
    at, end = view.queue_bounds(topic, queue_id)
    messages: dict[int, tuple[int, bytes]] = {}
    while at < end:
        got = view.get_message(topic, queue_id, at, 32, tags=tags)
        for message in got.messages:
            if (message.topic, message.queue_id) == (topic, queue_id):  # else it is a light queue
                messages[message.queue_offset] = (message.commitlog_offset, message.body)
        at = got.next_begin_offset
    return messages
