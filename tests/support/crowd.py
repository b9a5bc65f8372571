"""Many kinds of writers on one store, some of them killed, and how they share the write lock.

Runs in a slim interpreter (tests.support.slim). No process may wait for the write lock longer than
its time-out: that would end the waiter with an error.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import time
from pathlib import Path

import numpy  # noqa: F401 - once, before the forks

from storage.store import MessageStore
from tests.support.busy_puppet import ROOMY
from tests.support.crash import Acknowledge, Acknowledged, Child, inspect, missing
from tests.support.samples import Sample, batch, new_store, open_store, prepared

LONGEST_WAIT_MS = 5_000
TEMPERS = ("busy", "busy", "bursts", "batches", "rare")
HELD_ON = -1
"""Acknowledged in place of a put, once: the writer has kept the write lock between two puts."""


def crowd(folder: str, seed: int, deaths: int) -> dict[str, object]:
    """Five writers; ``deaths`` times one is killed and replaced, then all close."""
    chance = random.Random(seed)
    root = new_store(Path(folder) / f"crowd-{seed}", ROOMY)
    open_store(root, ROOMY).close()
    stop, stopping = os.pipe()
    started = 0
    running: list[_Writer] = []
    ended: list[_Writer] = []

    def start(temper: str) -> None:
        nonlocal started
        running.append(_Writer(root, f"w{started}", temper, stop))
        started += 1

    for temper in TEMPERS:
        start(temper)
    for _ in range(deaths):
        victim = chance.choice(running)
        _read_until(running, victim, len(victim.answers) + chance.randrange(1, 40))
        victim.child.kill_within(chance.random() * 0.004)
        running.remove(victim)
        ended.append(victim)
        start(victim.temper)
    for writer in ended:  # a dying process is still in: no other would be the last one out
        writer.wait()
    os.write(stopping, b"!")
    while any(writer.child.answers_come for writer in running):
        _read(running)
    for writer in running:
        writer.wait()
    ended += running
    found = inspect(root, ROOMY)
    acknowledged = [one for writer in ended for one in writer.acknowledged()]
    shutil.rmtree(root)
    return {
        "failures": found.problems + missing(found, acknowledged),
        "messages": len(acknowledged),
        "held on": sum(HELD_ON in writer.answers for writer in ended),
    }


class _Writer:
    def __init__(self, root: Path, name: str, temper: str, stop: int) -> None:
        self.name = name
        self.temper = temper
        self.answers: dict[int, tuple[list[int], list[int]]] = {}

        def run(acknowledge: Acknowledge) -> None:
            with open_store(root, ROOMY, gate_timeout_ms=LONGEST_WAIT_MS) as store:
                self._write(store, stop, acknowledge)

        self.child = Child(run)

    def _write(self, store: MessageStore, stop: int, acknowledge: Acknowledge) -> None:
        rest = random.Random(self.name)
        number, told = 0, False
        while not select.select([stop], [], [], 0)[0]:
            result = store.put(prepared(self._samples(number)))
            if not told and store._write_lock.biased:
                told = True
                acknowledge(HELD_ON, result)
            acknowledge(number, result)
            number += 1
            if self.temper == "rare":
                time.sleep(rest.random() * 0.03)
            elif self.temper == "bursts" and number % 30 == 0:
                time.sleep(rest.random() * 0.01)

    def _samples(self, number: int) -> list[Sample]:
        name = f"{self.name}-{number}"
        if self.temper == "batches":
            return batch(name, 60, "AB"[number % 2], (0, 1))
        return [Sample(name, "AB"[number % 2], number % 3, keys=("k",))]

    def wait(self) -> None:
        _, answers = self.child.wait()
        self.answers |= answers

    def acknowledged(self) -> list[Acknowledged]:
        return [
            Acknowledged(sample, place, offset)
            for number, (places, offsets) in self.answers.items()
            if number != HELD_ON
            for sample, place, offset in zip(self._samples(number), places, offsets, strict=True)
        ]


def _read(running: list[_Writer]) -> None:
    """Take what has been acknowledged, so that no writer waits for us."""
    pipes = {writer.child.pipe: writer for writer in running if writer.child.answers_come}
    for pipe in select.select(list(pipes), [], [], 1)[0]:
        pipes[pipe].answers |= pipes[pipe].child.read()


def _read_until(running: list[_Writer], one: _Writer, answers: int) -> None:
    while one.child.answers_come and len(one.answers) < answers:
        _read(running)
