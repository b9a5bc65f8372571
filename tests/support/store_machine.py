"""A store against lists and dicts: any order of puts, reads, queries, flushes, closes and kills.

Runs in a slim interpreter (tests.support.slim), because its kill steps fork.
"""

from __future__ import annotations

import shutil
import tempfile
from bisect import bisect_left
from collections import defaultdict
from itertools import count
from pathlib import Path
from traceback import format_exc
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, seed as seeded, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.config import StoreConfig
from storage.readonly import Boundary
from storage.results import GetMessageStatus, PutMessageStatus
from storage.store import MessageStore
from tests.support.crash import Acknowledge, Child, Put, inspect
from tests.support.every_instant import die_at, lose_page
from tests.support.oracle import Found
from tests.support.samples import TINY, Sample, Ticking, new_store, open_store, prepared, sync_flush
from tests.support.watched_fs import WatchedFileSystem

TOPICS = ("A", "B", "a-rather-long-topic-name")
QUEUES = (0, 1)
KEYS = ("k", "other", "k\N{LATIN SMALL LETTER U WITH DIAERESIS}")
CONFIGS = (
    TINY,
    sync_flush(TINY),
    TINY.with_(mapped_file_size_consume_queue=400, max_index_num=50, max_hash_slot_num=11),
    TINY.with_(mapped_file_size_commit_log=64 << 10, message_index_enable=False),
)
OUTLINES = st.tuples(
    st.sampled_from(TOPICS),
    st.sampled_from(QUEUES),
    st.integers(1, 900),
    st.sampled_from((None, "T", "U")),
    st.lists(st.sampled_from(KEYS), max_size=3, unique=True).map(tuple),
)


class Stored(NamedTuple):
    """A message of the model and where it is."""

    sample: Sample
    commitlog_offset: int
    queue_offset: int
    store_timestamp: int


class StoreMachine(RuleBasedStateMachine):
    """The store under test, and the model: the log as a list, queues and keys as dicts of it."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        place = memory if memory.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="rmqctl-machine-", dir=place))
        self.names = count()
        self.clock = Ticking()
        self.log: list[Stored] = []
        self.queues: dict[tuple[str, int], list[Stored]] = defaultdict(list)

    @initialize(config=st.sampled_from(CONFIGS))
    def create(self, config: StoreConfig) -> None:
        self.config = config
        self.root = new_store(self.folder / "store", config)
        self.store: MessageStore | None = None
        self.reopen()

    def teardown(self) -> None:
        try:
            if hasattr(self, "root"):
                if self.store is not None:
                    self.store.close()
                problems = inspect(self.root, self.config).problems
                assert problems == []
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- writing ------------------------------------------------------------------------------

    @rule(outlines=st.lists(OUTLINES, min_size=1, max_size=6), whole=st.booleans())
    def put(self, outlines: list[tuple], whole: bool) -> None:  # type: ignore[type-arg]
        samples = self.samples(outlines)
        result = self.opened.put(prepared(samples), whole=whole)
        if result.status is PutMessageStatus.MESSAGE_ILLEGAL:  # a batch larger than a log file
            assert whole
            assert sum(sample.size for sample in samples) > 2000
            return
        assert result.status is PutMessageStatus.PUT_OK
        self.remember(
            samples, result.commitlog_offsets, result.queue_offsets, result.store_timestamp
        )
        if whole:
            size = self.config.mapped_file_size_commit_log
            assert len({int(place) // size for place in result.commitlog_offsets}) == 1

    @rule(outline=OUTLINES, times=st.integers(1, 8))
    def put_one_after_the_other(self, outline: tuple, times: int) -> None:  # type: ignore[type-arg]
        """Into one queue: from the third on records take the fast path (fast_append.py)."""
        for _ in range(times):
            self.put([outline], whole=False)

    @rule(topic=st.sampled_from(TOPICS))
    def put_too_much(self, topic: str) -> None:
        size = self.config.mapped_file_size_commit_log
        result = self.opened.put(prepared([Sample("too large", topic, size=size)]))
        assert result.status is PutMessageStatus.MESSAGE_ILLEGAL
        assert len(result.commitlog_offsets) == 0

    @rule(outlines=st.lists(OUTLINES, min_size=1, max_size=3))
    def put_through_another_opening(self, outlines: list[tuple]) -> None:  # type: ignore[type-arg]
        samples = self.samples(outlines)
        with open_store(self.root, self.config, clock=self.clock) as other:
            assert other.recovery is None or self.store is None
            result = other.put(prepared(samples))
        self.remember(
            samples, result.commitlog_offsets, result.queue_offsets, result.store_timestamp
        )

    @rule()
    def flush(self) -> None:
        self.opened.flush()

    # -- closing, dying -----------------------------------------------------------------------

    @rule()
    def close_and_reopen(self) -> None:
        self.opened.close()
        self.store = None
        assert not (self.root / "abort").exists()
        self.reopen()
        assert self.opened.recovery is None

    @rule()
    def lose_the_page(self) -> None:
        """A reboot after a clean close: recovery finds the same as was there."""
        self.opened.close()
        self.store = None
        lose_page(self.root)
        self.reopen()
        assert self.opened.recovery is not None
        assert self.opened.recovery.notes == []

    @rule(
        outlines=st.lists(st.lists(OUTLINES, min_size=1, max_size=4), min_size=1, max_size=4),
        instant=st.integers(1, 200),
        survivor=st.booleans(),
        reboot=st.booleans(),
    )
    def kill(
        self,
        outlines: list[list[tuple]],  # type: ignore[type-arg]
        instant: int,
        survivor: bool,
        reboot: bool,
    ) -> None:
        """Another process puts and dies, while this one is in (``survivor``) or not."""
        puts = [Put(self.samples(one)) for one in outlines]
        if not survivor:
            self.opened.close()
            self.store = None

        def run(acknowledge: Acknowledge) -> None:
            fs = WatchedFileSystem(lambda event: die_at(instant, event))
            store = open_store(self.root, self.config, fs=fs, clock=self.clock)
            for number, put in enumerate(puts):
                acknowledge(number, store.put(prepared(put.samples)))
            store.close()

        _, answers = Child(run).wait()
        self.clock.now += 1000  # the child's clock went on, too
        if self.store is None and reboot:
            lose_page(self.root)
        self.reopen()
        end = [Sample(f"m{next(self.names)}", "A")]
        result = self.opened.put(prepared(end))
        known = len(self.log)
        for record in Found(self.root, self.config).records[known:-1]:
            sample = next((one for put in puts for one in put.samples if one.id == record.id), None)
            assert sample is not None, f"{record.id} was never sent"
            self.remember([sample], [record.offset], [record.queue_offset], record.store_timestamp)
        told = {
            put.samples[i].id: (places[i], offsets[i])
            for put, (places, offsets) in ((puts[n], answer) for n, answer in answers.items())
            for i in range(len(put.samples))
        }
        there = {
            one.sample.id: (one.commitlog_offset, one.queue_offset) for one in self.log[known:]
        }
        assert {name: there.get(name) for name in told} == told, "acknowledged, and gone or moved"
        begun = [one.id for put in puts[: max(answers, default=-1) + 2] for one in put.samples]
        assert list(there) == begun[: len(there)], "not in order, or never sent"
        self.remember(end, result.commitlog_offsets, result.queue_offsets, result.store_timestamp)

    # -- reading ------------------------------------------------------------------------------

    @rule(
        topic=st.sampled_from((*TOPICS, "unknown")),
        queue_id=st.sampled_from(QUEUES),
        offset=st.integers(-1, 60),
        number=st.integers(1, 40),
    )
    def read(self, topic: str, queue_id: int, offset: int, number: int) -> None:
        queue = self.queues.get((topic, queue_id), [])
        result = self.opened.view.get_message(topic, queue_id, offset, number)
        assert (result.min_offset, result.max_offset) == (0, len(queue))
        if 0 <= offset < len(queue):
            assert result.status is GetMessageStatus.FOUND
            assert 1 <= len(result.messages) <= number
            assert result.next_begin_offset == offset + len(result.messages)
            for stored, message in zip(queue[offset:], result.messages, strict=False):
                self.assert_same(stored, message)
            return
        assert result.messages == []
        expected = {
            not queue: GetMessageStatus.NO_MESSAGE_IN_QUEUE,
            bool(queue) and offset < 0: GetMessageStatus.OFFSET_TOO_SMALL,
            bool(queue) and offset == len(queue): GetMessageStatus.OFFSET_OVERFLOW_ONE,
            bool(queue) and offset > len(queue): GetMessageStatus.OFFSET_OVERFLOW_BADLY,
        }
        assert result.status is expected[True]

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def read_by_offset(self, data: st.DataObject) -> None:
        stored = data.draw(st.sampled_from(self.log))
        self.assert_same(stored, self.opened.view.look_message_by_offset(stored.commitlog_offset))

    @precondition(lambda self: self.log)
    @rule(data=st.data(), shift=st.integers(-8, 8))
    def read_by_time(self, data: st.DataObject, shift: int) -> None:
        chosen = data.draw(st.sampled_from(self.log))
        topic, queue_id = chosen.sample.topic, chosen.sample.queue_id
        times = [stored.store_timestamp for stored in self.queues[topic, queue_id]]
        wanted = chosen.store_timestamp + shift
        found = self.opened.view.offset_in_queue_by_time(topic, queue_id, wanted, Boundary.LOWER)
        assert found == bisect_left(times, wanted)

    @precondition(lambda self: self.config.message_index_enable)
    @rule(topic=st.sampled_from(TOPICS), key=st.sampled_from(KEYS))
    def query(self, topic: str, key: str) -> None:
        wanted = [
            stored.sample.id
            for stored in self.log
            if stored.sample.topic == topic and key in stored.sample.keys
        ]
        found = self.opened.view.query_message(topic, key, 1000)
        ids = [message.properties["UNIQ_KEY"] for message in found.messages]
        assert ids == wanted[-len(ids) :] if ids else not wanted
        assert len(ids) == min(len(wanted), self.config.max_msgs_num_batch)

    @invariant()
    def bounds(self) -> None:
        if getattr(self, "store", None) is None:
            return
        view = self.opened.view
        assert view.queues() == sorted(self.queues)
        for topic, queue_id in self.queues:
            length = len(self.queues[topic, queue_id])
            assert view.max_offset_in_queue(topic, queue_id) == length

    # -- helpers ------------------------------------------------------------------------------

    @property
    def opened(self) -> MessageStore:
        assert self.store is not None
        return self.store

    def reopen(self) -> None:
        if self.store is None:
            self.store = open_store(self.root, self.config, clock=self.clock)

    def samples(self, outlines: list[tuple]) -> list[Sample]:  # type: ignore[type-arg]
        return [Sample(f"m{next(self.names)}", *outline) for outline in outlines]

    def remember(self, samples, places, offsets, timestamp) -> None:
        for sample, place, offset in zip(samples, places, offsets, strict=True):
            queue = self.queues[sample.topic, sample.queue_id]
            assert offset == len(queue)
            assert not self.log or place > self.log[-1].commitlog_offset
            stored = Stored(sample, int(place), int(offset), timestamp)
            queue.append(stored)
            self.log.append(stored)

    def assert_same(self, stored: Stored, message) -> None:
        sample = stored.sample
        assert (
            message.topic, message.queue_id, message.queue_offset, message.commitlog_offset,
            message.body, dict(message.properties), message.store_timestamp,
        ) == (
            sample.topic, sample.queue_id, stored.queue_offset, stored.commitlog_offset,
            sample.body(), sample.properties(), stored.store_timestamp,
        )  # fmt: skip


def run_machine(examples: int, steps: int, seed: int) -> str:
    """The traceback of a failing example, "" if there is none."""
    machine = seeded(seed)(StoreMachine)
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink],
            ),
        )
    except BaseException as error:  # noqa: BLE001 - with the steps that led there
        return "\n".join([format_exc(limit=-6), *getattr(error, "__notes__", ())])
    return ""
