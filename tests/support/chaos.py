"""Consumers and producers in processes of their own, killed and started again at random.

Two groups of three on one topic, one consuming concurrently, one in order, and three producers.
The actions of all processes are in journals (tests.support.chaos_journal), which
tests.support.chaos_verdict judges at the end.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from broker.embedded.broker import EmbeddedBroker
from storage.config import StoreConfig
from storage.configs.topics import TopicConfig
from storage.format.message import SCHEDULE_TOPIC, MessageExt
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.chaos_journal import DONE, Event, JournalReader
from tests.support.slim import ROOT

logger = logging.getLogger(__name__)

TOPIC: Final = "T"
QUEUES: Final = 8
DELAY_LEVELS: Final = 18
MEMBERS: Final = 3
PRODUCERS: Final = 3
CONCURRENT: Final = "concurrent"
ORDERLY: Final = "orderly"
GROUPS: Final = (CONCURRENT, ORDERLY)
THREADS: Final = 4
FAILS: Final = 0.02
PATIENCE_S: Final = 120.0

STORE: Final = StoreConfig(
    mapped_file_size_commit_log=4 << 20,
    mapped_file_size_consume_queue=3_000 * 20,
    max_hash_slot_num=5_000,
    max_index_num=40_000,
)
"""Files that are rolled many times in a run."""


def start_actor(program: str, *arguments: object) -> subprocess.Popen[bytes]:
    """Start a module of tests.support as a process; it ends when its input does."""
    return subprocess.Popen(
        [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            f"tests.support.{program}",
            *map(str, arguments),
        ],
        stdin=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


class Kill(NamedTuple):
    """Killed processes, with times (ns of CLOCK_MONOTONIC, just before)."""

    time: int
    group: str
    name: str


@dataclass
class Actor:
    """One of the actors: killed again and again, and replaced by a new process each time.

    ``group`` is empty for producers. ``name`` is that of the process that plays it now.
    """

    group: str
    number: int
    life: int = 0
    process: subprocess.Popen[bytes] | None = None
    runs: bool = False
    """Whether it has said that it is in."""

    @property
    def name(self) -> str:
        return f"{self.group or 'p'}{self.number}.{self.life}"


def stored_messages(view: StoreView, topic: str, queue_id: int) -> Iterator[MessageExt]:
    """Give all messages of a queue."""
    offset = 0
    while offset < view.max_offset_in_queue(topic, queue_id):
        found = view.get_message(topic, queue_id, offset, 32)
        yield from found.messages
        offset = found.next_begin_offset


def attempts(view: StoreView, level: int) -> Iterator[tuple[str, int]]:
    """Give what was sent back with a delay level: the message, and how often by then."""
    for message in stored_messages(view, SCHEDULE_TOPIC, level):
        yield message.body.decode(), message.reconsume_times


@dataclass
class Told:
    """What the journals say: events of each process, in the order of the file."""

    events: dict[str, list[Event]] = field(default_factory=dict)
    sent: int = 0
    done: dict[str, set[str]] = field(default_factory=lambda: {group: set() for group in GROUPS})
    later: dict[str, set[str]] = field(default_factory=lambda: {group: set() for group in GROUPS})
    attempts: set[tuple[str, int]] = field(default_factory=set)
    """Messages that came to the concurrent group, with how often they had been sent back."""
    ending: int = 0
    """When consumers began to leave, one by one (ns): what comes twice by that, and fails, is
    sent back, and no thread waits for it any more."""

    def add(self, actor_group: str, name: str, event: Event) -> None:
        self.events.setdefault(name, []).append(event)
        if event.kind == "sent":
            self.sent += 1
        elif event.kind == "got":
            times, said, message = event.words[3:]
            if actor_group == CONCURRENT:  # in order: attempts count without send-backs
                self.attempts.add((message, int(times)))
            (self.done if said == DONE else self.later)[actor_group].add(message)


class Chaos:
    """One run. ``per_second`` messages are sent by all producers together."""

    def __init__(self, folder: Path, seed: int, per_second: float) -> None:
        self.root = folder / "store"
        self.told = Told()
        self.kills: list[Kill] = []
        self._folder = folder
        self._chance = random.Random(seed)
        self._seed = seed
        self._per_second = per_second / PRODUCERS
        self._readers: dict[str, tuple[str, JournalReader]] = {}
        self._consumers = [Actor(group, n) for group in GROUPS for n in range(MEMBERS)]
        self._producers = [Actor("", n) for n in range(PRODUCERS)]
        MessageStore.create(self.root, STORE)
        with EmbeddedBroker.open(self.root) as broker:
            broker.update_topic(TopicConfig(TOPIC, QUEUES, QUEUES))

    def run(self, seconds: float, messages: int, pause_s: tuple[float, float]) -> None:
        """Kill and restart for so long, until so many messages are acknowledged, then let
        everything be consumed. ``pause_s``: bounds of the time between two kills."""
        try:
            for actor in [*self._consumers, *self._producers]:
                self._start(actor)
            self._wait(lambda: all(a.runs for a in [*self._consumers, *self._producers]), "start")
            end = time.monotonic() + seconds
            while time.monotonic() < end or self.told.sent < messages:
                self._look_on(self._chance.uniform(*pause_s))
                self._kill_some()
            for producer in self._producers:
                self._end(producer)
            for actor in self._consumers:
                if actor.process is None:
                    self._start(actor)
            with StoreView.open(self.root) as view:
                stored = sum(view.max_offset_in_queue(TOPIC, q) for q in range(QUEUES))
            self._wait(lambda: self._all_done(stored), "consume everything")
            self._wait(self._retries_done, "consume every retry")
            self.told.ending = time.monotonic_ns()
            for actor in self._consumers:
                self._end(actor)
            self._look_on(0)
        finally:
            for actor in [*self._consumers, *self._producers]:
                if actor.process is not None:
                    actor.process.kill()
                    self._reap(actor)

    def _all_done(self, stored: int) -> bool:
        return all(
            len(self.told.done[group]) == stored and self.told.later[group] <= self.told.done[group]
            for group in GROUPS
        )

    def _retries_done(self) -> bool:
        """Whether what was sent back has come again: also if the message was consumed meanwhile,
        because its sender was killed."""
        with StoreView.open(self.root) as view:
            waited = {attempt for level in range(DELAY_LEVELS) for attempt in attempts(view, level)}
        return waited <= self.told.attempts

    # -- killing

    def _kill_some(self) -> None:
        """Kill one or two actors; those that were killed before come back one by one."""
        actors = [*self._consumers, *self._producers]
        for actor in actors:
            if actor.process is None and self._chance.random() < 0.7:
                self._start(actor)
        for _ in range(self._chance.choice((1, 1, 1, 2))):
            victims = [actor for actor in actors if self._may_die(actor)]
            if victims:
                self._kill(self._chance.choice(victims))

    def _may_die(self, actor: Actor) -> bool:
        """A member of a group has to be left, or none could take its queues. One that is still
        coming may die as well."""
        if actor.process is None:
            return False
        others = [a for a in self._consumers if a.group == actor.group and a is not actor]
        return not actor.group or any(a.runs for a in others)

    def _kill(self, actor: Actor) -> None:
        assert actor.process is not None
        self.kills.append(Kill(time.monotonic_ns(), actor.group, actor.name))
        actor.process.send_signal(signal.SIGKILL)
        self._reap(actor)

    def _end(self, actor: Actor) -> None:
        """Let it leave in its own way."""
        process = actor.process
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
            assert process.wait(PATIENCE_S) == 0, f"{actor.name} ended with {process.returncode}"
            self._reap(actor)

    def _reap(self, actor: Actor) -> None:
        process = actor.process
        assert process is not None
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        actor.process, actor.runs = None, False

    def _start(self, actor: Actor) -> None:
        actor.life += 1
        name = actor.name
        journal = self._folder / f"{name}.journal"
        self._readers[name] = actor.group, JournalReader(journal)
        if actor.group:
            how = "orderly" if actor.group == ORDERLY else "concurrently"
            arguments: list[object] = [actor.group, name, how, THREADS, FAILS]
        else:
            arguments = [name, self._per_second]
        program = "chaos_consumer" if actor.group else "chaos_producer"
        actor.process = start_actor(
            program, self.root, journal, *arguments, f"{self._seed} {actor.name}"
        )

    # -- looking on

    def _look_on(self, seconds: float) -> None:
        """Read the journals for a while, once at least."""
        end = time.monotonic() + seconds
        while True:
            for name, (group, reader) in self._readers.items():
                for event in reader.more():
                    self.told.add(group, name, event)
            for actor in [*self._consumers, *self._producers]:
                process = actor.process
                if process is not None:
                    assert process.poll() is None, f"{actor.name} ended: {process.returncode}"
                    actor.runs = actor.name in self.told.events
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.05))

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                self._abort_all()
                raise AssertionError(f"too long: {what}; {self._standing()}")
            self._look_on(0.05)

    def _abort_all(self) -> None:
        """Make each process print its stacks on stderr."""
        for actor in [*self._consumers, *self._producers]:
            if actor.process is not None:
                logger.error("%s, in: %s", actor.name, actor.runs)
                actor.process.send_signal(signal.SIGABRT)
                actor.process.wait()

    def _standing(self) -> str:
        done = {group: len(ids) for group, ids in self.told.done.items()}
        return f"{self.told.sent} sent, consumed {done}"
