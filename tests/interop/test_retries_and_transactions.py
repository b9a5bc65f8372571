"""Retries, delayed messages, dead letters and transactions: a real broker goes on where we ended,
and we go on where a real broker ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest
from broker.api.send import SendOptions
from broker.api.send_back import SendBackRequest
from broker.api.transactions import (
    CheckTransactionState,
    EndTransactionRequest,
    LocalTransactionState,
)
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from broker.transaction.check import TransactionCheckService
from storage.config import SMALL_STORE
from storage.configs.delay_offsets import load_delay_offsets
from storage.format.message import TRANS_HALF_TOPIC, Message, MessageExt
from storage.format.sys_flag import MessageSysFlag
from storage.readonly import StoreView
from storage.store import now_ms
from tests.interop.cluster import running_cluster
from tests.interop.store_probe import Row, Settings
from tests.support import golden
from tests.support.cli import run
from tests.support.java import Release
from tests.support.same_records import all_messages, only

LEVELS = " ".join(["1s"] * 18)
STORE = replace(SMALL_STORE, message_delay_level=LEVELS)
CONFIG = BrokerConfig(transaction_timeout_ms=1_000, transaction_check_max=100)
SETTINGS: Settings = {
    "messageDelayLevel": LEVELS,
    "transactionTimeOut": 1_000,
    "transactionCheckInterval": 500,
    "transactionCheckMax": 100,
    "mappedFileSizeCommitLog": STORE.mapped_file_size_commit_log,
    "mappedFileSizeConsumeQueue": STORE.mapped_file_size_consume_queue,
    "maxHashSlotNum": STORE.max_hash_slot_num,
    "maxIndexNum": STORE.max_index_num,
}
COMMIT = LocalTransactionState.COMMIT_MESSAGE
ROLLBACK = LocalTransactionState.ROLLBACK_MESSAGE


def read(broker: EmbeddedBroker, topic: str, offset: int) -> MessageExt:
    return only(broker.view.get_message(topic, 0, offset, 1).messages)


def end(broker: EmbeddedBroker, half: MessageExt, state: LocalTransactionState) -> None:
    broker.end_transaction(
        EndTransactionRequest("p", half.queue_offset, half.commitlog_offset, state)
    )


def written_by_us(root: Path) -> None:
    """A store in which something of each kind is done, and something waits; 100 s ago."""
    clock = [now_ms() - 100_000]
    create_store(root, STORE)
    with EmbeddedBroker.open(root, CONFIG, store_config=STORE, clock=lambda: clock[0]) as broker:
        delayed = broker.delayed
        assert delayed is not None
        for n in range(4):
            broker.send(Message("T", b"m%d" % n * 900, tags="A", keys=f"k{n}"), 0)
        for n, level in enumerate((0, 0, 0, -1)):
            place = read(broker, "T", n).commitlog_offset
            if n == 2:
                broker.send(Message("Later", b"d1", delay_time_level=4), 0)
                clock[0] += 1_000
                delayed.tick(clock[0])
            broker.send_message_back(SendBackRequest("g", "T", place, "", level))
        broker.send(Message("Later", b"d2", delay_time_level=99), 0)
        commits = [OffsetCommit("T", 0, 4), OffsetCommit("%RETRY%g", 0, 1)]
        broker.update_consumer_offsets("g", commits)
        prepared = SendOptions(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
        half = {"TRAN_MSG": "true", "PGROUP": "p"}
        for body in (b"committed", b"rolled back", b"pending"):
            broker.send(Message("Tx", body, properties=half), 0, prepared)
        end(broker, read(broker, TRANS_HALF_TOPIC, 0), COMMIT)
        end(broker, read(broker, TRANS_HALF_TOPIC, 1), ROLLBACK)
        delayed.shutdown()
    assert load_delay_offsets(root) == {3: 2, 4: 1}


@pytest.mark.interop
@pytest.mark.conformance("H2", "H7", "H12", "H15")
def test_a_real_broker_and_its_consumer_go_on_where_we_ended_and_we_behind_them(
    java49: Release, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    written_by_us(root)
    with running_cluster(java49, root, tmp_path, SETTINGS) as cluster:
        retried = cluster.consume("T", "g", 2)
        assert [row["properties"]["KEYS"] for row in by_key(retried)] == ["k1", "k2"]
        assert {row["reconsumeTimes"] for row in retried} == {1}
        assert {row["bodyLength"] for row in retried} == {1800}
        [letter] = cluster.consume("%DLQ%g", "monitor", 1)
        assert letter["properties"]["RETRY_TOPIC"] == "T"
        assert letter["reconsumeTimes"] == 1
        assert letter["properties"]["KEYS"] == "k3"
        later = cluster.consume("Later", "l", 2)
        assert sorted(row["properties"]["DELAY"] for row in later) == ["18", "4"]
        [committed] = cluster.consume("Tx", "tx", 1)
        assert committed["bodyLength"] == len(b"committed")
        half_end = 3
        deadline = time.monotonic() + 30
        while half_end < 5:  # asked about twice
            assert time.monotonic() < deadline
            [row] = cluster.topic_stats(TRANS_HALF_TOPIC)
            half_end = row["maxOffset"]
        cluster.stop()

    assert load_delay_offsets(root) == {3: 3, 4: 1, 18: 1}
    with StoreView.open(root) as view:
        stored = all_messages(view)
    halves = [message for message in stored if message.topic == TRANS_HALF_TOPIC]
    assert {message.body for message in halves[3:]} == {b"pending"}
    assert len([m for m in stored if m.topic == "%RETRY%g"]) == 3
    assert len([m for m in stored if m.topic == "Later"]) == 2

    asked: list[bytes] = []
    with EmbeddedBroker.open(root, CONFIG, store_config=STORE) as broker:
        checks = checks_of(broker, asked)
        while not asked:  # the newest copy is old enough a second after it was born
            checks.check()
        assert asked == [b"pending"]
        pulled = broker.pull(PullRequest("tx2", "Tx", 0, 0)).messages
        assert [message.body for message in pulled] == [b"committed", b"pending"]
        delayed = broker.delayed
        assert delayed is not None
        delayed.tick(now_ms())
        assert broker.max_offset("Later", 0) == 2
    assert run("-S", root, "store", "fsck").code == 0


@pytest.mark.interop
def test_a_real_broker_goes_on_from_a_killed_deliverer_and_repeats_nothing(
    java49: Release, tmp_path: Path
) -> None:
    """The deliverer was killed after its last batch; delayOffset.json counts that one, too."""
    root = tmp_path / "store"
    create_store(root, STORE)
    clock = [now_ms() - 100_000]
    count = 700
    with EmbeddedBroker.open(root, CONFIG, store_config=STORE, clock=lambda: clock[0]) as broker:
        broker.send_column("D", [b"%d" % n for n in range(count)], 0, properties={"DELAY": "1"})
        clock[0] += 2_000
        pid = os.fork()
        if not pid:
            with suppress(BaseException):
                killed = EmbeddedBroker.open(root, CONFIG, store_config=STORE)
                delayed = killed.delayed
                assert delayed is not None
                while delayed.tick(now_ms()) <= now_ms():
                    pass
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        assert broker.max_offset("D", 0) == count
        broker.send(Message("D", b"waits", delay_time_level=1), 0)
    with running_cluster(java49, root, tmp_path, SETTINGS) as cluster:
        deadline = time.monotonic() + 30
        end = 0
        while end <= count:  # the one that waited has come
            assert time.monotonic() < deadline
            [row] = [row for row in cluster.topic_stats("D") if row["queueId"] == 0]
            end = row["maxOffset"]
        cluster.stop()
    with StoreView.open(root) as view:
        bodies = [m.body for m in all_messages(view) if m.topic == "D"]
    assert sorted(bodies) == sorted([*(b"%d" % n for n in range(count)), b"waits"])


@pytest.mark.interop
@pytest.mark.long
def test_a_real_broker_and_we_go_on_from_a_killed_checker_and_each_transaction_is_visible_once(
    java49: Release, tmp_path: Path
) -> None:
    """The checker was killed in the middle of a round, after a copy of a half message. No producer
    is there to answer the real broker: it stores half messages again, and we ask about them."""
    root = tmp_path / "store"
    create_store(root, STORE)
    clock = [now_ms() - 100_000]
    bodies = [b"%d" % n for n in range(40)]
    with EmbeddedBroker.open(root, CONFIG, store_config=STORE, clock=lambda: clock[0]) as broker:
        prepared = SendOptions(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
        for body in bodies:
            half = {"TRAN_MSG": "true", "PGROUP": "p"}
            broker.send(Message("Tx", body, properties=half), 0, prepared)
        pid = os.fork()
        if not pid:
            with suppress(BaseException):
                checker = EmbeddedBroker.open(root, CONFIG, store_config=STORE)
                asked = _DiesAt(20)
                checks_of(checker, asked).check()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        visible, halves = broker.max_offset("Tx", 0), broker.max_offset(TRANS_HALF_TOPIC, 0)
        assert 0 < visible < len(bodies) < halves
    with running_cluster(java49, root, tmp_path, SETTINGS) as cluster:
        deadline = time.monotonic() + 30
        end = 0
        while end <= halves:  # it has checked
            assert time.monotonic() < deadline
            [row] = [row for row in cluster.topic_stats(TRANS_HALF_TOPIC) if row["queueId"] == 0]
            end = row["maxOffset"]
        cluster.stop()
    clock[0] = now_ms() + 100_000
    with EmbeddedBroker.open(root, CONFIG, store_config=STORE, clock=lambda: clock[0]) as broker:
        checks = checks_of(broker, [])
        for _ in range(3):
            checks.check()
            clock[0] += 100_000
    with StoreView.open(root) as view:
        found = [m.body for m in all_messages(view) if m.topic == "Tx"]
    assert sorted(found) == sorted(bodies)


class _DiesAt(list[bytes]):
    """What was asked; the process is killed at one of the questions."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def append(self, body: bytes) -> None:
        super().append(body)
        if len(self) == self._number:
            os.kill(os.getpid(), signal.SIGKILL)


def by_key(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: str(row["properties"]["KEYS"]))


def checks_of(broker: EmbeddedBroker, asked: list[bytes]) -> TransactionCheckService:
    """Checks whose producer commits everything."""
    store = broker.store
    assert store is not None

    def ask(question: CheckTransactionState) -> bool:
        asked.append(question.message.body)
        broker.end_transaction(
            EndTransactionRequest(
                question.producer_group,
                question.transaction_state_table_offset,
                question.commitlog_offset,
                COMMIT,
            )
        )
        return True

    return TransactionCheckService(
        broker.config,
        broker._topics,
        broker.progress,
        view=lambda: store.view,
        put=store.put,
        ask=ask,
        now=store.now,
        file_reserved_ms=1 << 60,
    )


@pytest.mark.parametrize("name", ["transaction-4.9", "transaction-5.3"])
def test_we_go_on_with_a_real_brokers_transactions(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    asked: list[bytes] = []
    with EmbeddedBroker.open(root) as broker:
        queues = [queue for queue in broker.view.queues() if queue[0].startswith("GoldenTx")]
        before = sum(broker.max_offset(*queue) for queue in queues)
        pending = read_last(broker, TRANS_HALF_TOPIC, 0)
        checks_of(broker, asked).check()
        assert len(asked) == 1  # all others have ended
        assert sum(broker.max_offset(*queue) for queue in queues) == before + 1
        half = read_last(broker, TRANS_HALF_TOPIC, 0)
        assert half.get_property("plan") == "pending"
        times = int(pending.properties.get("TRANSACTION_CHECK_TIMES", 0))
        assert half.get_property("TRANSACTION_CHECK_TIMES") == str(times + 1)


@pytest.mark.parametrize("name", ["retry-dlq-4.9", "retry-dlq-5.3"])
@pytest.mark.slow
def test_we_go_on_with_a_real_brokers_retries_and_dead_letters(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    expected = golden.manifest(name)["facts"]["expectedDead"]
    with EmbeddedBroker.open(root) as broker:
        for group, count in expected.items():
            letters = broker.pull(PullRequest("monitor", f"%DLQ%{group}", 0, 0)).messages
            assert len(letters) == count
            assert all(letter.get_property("RETRY_TOPIC") for letter in letters)
        start = broker.query_consumer_offset("g-slow", "%RETRY%g-slow", 0).offset
        assert start == 3
        waiting = broker.pull(PullRequest("g-slow", "%RETRY%g-slow", 0, start)).messages
        assert waiting
        assert {message.reconsume_times for message in waiting} == {1}
        again = waiting[0]
        broker.send_message_back(
            SendBackRequest("g-slow", again.topic, again.commitlog_offset, again.msg_id)
        )
        stored = read_last(broker, "SCHEDULE_TOPIC_XXXX", 3)
        assert stored.get_property("RETRY_TOPIC") == "GoldenRetry"
        assert stored.get_property("ORIGIN_MESSAGE_ID") == again.get_property("ORIGIN_MESSAGE_ID")
        assert stored.reconsume_times == 2


def read_last(broker: EmbeddedBroker, topic: str, queue_id: int) -> MessageExt:
    last = broker.view.max_offset_in_queue(topic, queue_id) - 1
    return only(broker.view.get_message(topic, queue_id, last, 1).messages)
