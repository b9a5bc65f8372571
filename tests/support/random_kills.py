"""Writers killed at any moment, one alone or several at once, and the stores that they leave.

Runs in a slim interpreter (tests.support.slim). What a writer sends follows from its name, so an
acknowledgement is only the number of a put and where its messages are.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path

import numpy  # noqa: F401 - once, before the forks

from storage.config import StoreConfig
from storage.files.fs import FileSystem
from storage.results import PutMessageResult, PutMessageStatus
from storage.store import MessageStore, now_ms
from tests.support.crash import Acknowledge, Acknowledged, Child, Put, inspect, missing
from tests.support.oracle import page_will_be_trusted
from tests.support.samples import SMALL, TINY, Sample, batch, new_store, prepared, sync_flush

ROLLING = TINY.with_(mapped_file_size_commit_log=8 << 10, max_index_num=40, max_hash_slot_num=9)
CONFIGS = [ROLLING.with_(flush_interval_commit_log_ms=1), sync_flush(ROLLING), SMALL]
OPENED = -1
"""Acknowledged in place of a put: the writer is in; its place says whether recovery ran."""


def put_of(writer: str, number: int, config: StoreConfig) -> Put:
    """The ``number``-th put of a writer."""
    chance = random.Random(f"{writer} {number}")
    name, topic = f"{writer}-{number}", chance.choice("ABC")
    if config is SMALL and number % 5 == 3:
        return Put(
            batch(name, 50 + chance.randrange(40), topic, (0, 1), size=chance.choice((20, 400)))
        )
    if chance.random() < 0.3:
        return Put(batch(name, chance.randrange(2, 8), topic, (0, 1, 2)), chance.random() < 0.3)
    keys = tuple(f"k{i}" for i in range(chance.randrange(3)))
    return Put([Sample(name, topic, chance.randrange(4), chance.randrange(20, 900), "T", keys)])


class Writer:
    """A forked process that puts without end, or until a test closes it."""

    def __init__(
        self, root: Path, name: str, config: StoreConfig, *, churn: int, exclusive: bool
    ) -> None:
        self.name = name
        self._config = config
        reading, self._stop = os.pipe()
        os.set_blocking(reading, False)

        def run(acknowledge: Acknowledge) -> None:
            os.close(self._stop)
            self._write(root, reading, acknowledge, churn, exclusive=exclusive)

        self._child = Child(run)
        os.close(reading)
        self.answers: dict[int, tuple[list[int], list[int]]] = {}

    def _write(
        self, root: Path, stop: int, acknowledge: Acknowledge, churn: int, *, exclusive: bool
    ) -> None:
        def opened() -> MessageStore:
            store = MessageStore(
                root,
                self._config,
                exclusive=exclusive,
                clock=now_ms,
                fs=FileSystem(),
                gate_timeout_ms=20_000,
            )
            recovered = [int(store.recovery is not None)]
            acknowledge(OPENED, PutMessageResult(PutMessageStatus.PUT_OK, recovered, recovered))
            return store

        store = opened()
        number = 0
        while True:
            put = put_of(self.name, number, self._config)
            acknowledge(number, store.put(prepared(put.samples), whole=put.whole))
            number += 1
            try:
                os.read(stop, 1)
                break
            except BlockingIOError:
                pass
            if churn and number % churn == 0:
                store.close()
                store = opened()
        store.close()

    def wait_for(self, answers: int) -> None:
        """Until it is in (1) and has been acknowledged so many puts less one, or has ended."""
        while len(self.answers) < answers and self._child.answers_come:
            self.answers |= self._child.read()

    def kill_within(self, seconds: float) -> None:
        self._child.kill_within(seconds)
        self.wait()

    def send_kill(self) -> None:
        os.kill(self._child.pid, signal.SIGKILL)

    def tell_to_close(self) -> None:
        os.write(self._stop, b"!")

    def wait(self) -> None:
        _, answers = self._child.wait()
        self.answers |= answers
        os.close(self._stop)

    def acknowledged(self) -> list[Acknowledged]:
        return [
            Acknowledged(sample, place, offset)
            for number, (places, offsets) in self.answers.items()
            if number != OPENED
            for sample, place, offset in zip(
                put_of(self.name, number, self._config).samples, places, offsets, strict=True
            )
        ]

    @property
    def recovered(self) -> bool:
        return bool(self.answers.get(OPENED, ([0], []))[0][0])


def one_writer(folder: str, seed: int, kills: int) -> dict[str, object]:
    """One after the other; each store is used until ten have died in it."""
    chance = random.Random(seed)
    failures: list[str] = []
    messages = 0
    for first in range(0, kills, 10):
        config = chance.choice(CONFIGS)
        root = _opened_once(Path(folder) / f"one-{seed}-{first}", config)
        acknowledged: list[Acknowledged] = []
        for death in range(first, min(kills, first + 10)):
            trusted = page_will_be_trusted(root)
            exclusive, churn = chance.random() < 0.3, chance.choice((0, 0, 3))
            writer = Writer(root, f"w{death}", config, churn=churn, exclusive=exclusive)
            writer.wait_for(chance.choice((0, 1, 1, 2, 5, 10, 30)))
            writer.kill_within(chance.random() * 0.003)
            acknowledged += writer.acknowledged()
            if trusted and writer.recovered and not churn:
                failures.append(f"seed {seed}, death {death}: recovery for no reason")
        failures += [
            f"seed {seed}, death {death}: {bad}" for bad in _judge(root, config, acknowledged)
        ]
        messages += len(acknowledged)
        shutil.rmtree(root)
    return {"failures": failures, "messages": messages}


def several_writers(folder: str, seed: int, kills: int, writers: int = 3) -> dict[str, object]:
    """Several at once; each killed one is replaced while the others go on."""
    chance = random.Random(seed)
    failures: list[str] = []
    messages = done = 0
    while done < kills:
        config = chance.choice(CONFIGS)
        churn = chance.choice((0, 2))
        root = _opened_once(Path(folder) / f"several-{seed}-{done}", config)
        running: list[Writer] = []
        ended: list[Writer] = []

        def start(
            number: int, root: Path = root, config: StoreConfig = config, churn: int = churn
        ) -> Writer:
            return Writer(root, f"w{number}", config, churn=churn, exclusive=False)

        running = [start(done + i) for i in range(writers)]
        for writer in running:
            writer.wait_for(1)
        for _ in range(10):
            victim = running.pop(chance.randrange(len(running)))
            victim.wait_for(chance.choice((0, 2, 10, 30)))
            victim.kill_within(chance.random() * 0.003)
            ended.append(victim)
            done += 1
            if not churn and not (root / "abort").exists():
                failures.append(f"seed {seed}, death {done}: no abort file beside living writers")
            running.append(start(done + writers))
        clean = chance.random() < 0.5
        for writer in running:  # all at once, so that several close at the same time
            if clean:
                writer.tell_to_close()
            else:
                writer.send_kill()
                done += 1
        for writer in running:
            writer.wait()
        ended += running
        if clean and (root / "abort").exists():
            failures.append(f"seed {seed}, death {done}: abort stays behind the last clean closer")
        if not churn and any(writer.recovered for writer in ended):
            failures.append(f"seed {seed}, death {done}: recovery beside living writers")
        trusted = page_will_be_trusted(root)
        if not churn and not clean and not trusted:
            failures.append(f"seed {seed}, death {done}: the page of killed writers is not right")
        acknowledged = [one for writer in ended for one in writer.acknowledged()]
        failures += [
            f"seed {seed}, death {done}: {bad}" for bad in _judge(root, config, acknowledged)
        ]
        messages += len(acknowledged)
        shutil.rmtree(root)
    return {"failures": failures, "messages": messages}


def _opened_once(root: Path, config: StoreConfig) -> Path:
    """A store whose page is right already, as all but the newest ones."""
    new_store(root, config)
    _open(root, config).close()
    return root


def _open(root: Path, config: StoreConfig) -> MessageStore:
    return MessageStore(
        root, config, exclusive=False, clock=now_ms, fs=FileSystem(), gate_timeout_ms=20_000
    )


def _judge(root: Path, config: StoreConfig, acknowledged: list[Acknowledged]) -> list[str]:
    trusted = page_will_be_trusted(root)
    store = _open(root, config)
    problems = []
    if trusted and store.recovery is not None:
        problems.append(f"a page that can be trusted was not: {store.recovery}")
    probe = Sample("probe", "A")
    result = store.put(prepared([probe]))
    store.close()
    last = Acknowledged(probe, result.commitlog_offsets[0], result.queue_offsets[0])
    found = inspect(root, config)
    return problems + found.problems + missing(found, [*acknowledged, last])
