"""A broker closes in three seconds, also where a callback of a user does not return."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest
from broker.config import BrokerConfig
from broker.members.notices import Notices
from client.consumer.consumer_config import ConsumerConfig
from rmqctl import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus, Producer, PushConsumer
from storage.configs.topics import TopicConfig
from storage.errors import StoreClosedError, StoreError
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.broker_puppet import broker_puppet
from tests.support.consumers import eventually
from tests.support.recording_client import RecordingClient, consumer, heartbeat

CLOSE_S = 3.0
BUSY_S = 3.0
"""What a machine may add on which much else runs: a wait without an end is none of that."""


class Blocking:
    """A callback that comes back when the test is over."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.released = threading.Event()

    def __call__(self, *_: object) -> None:
        self.begun.set()
        self.released.wait(60)


@pytest.fixture
def blocking() -> Iterator[Blocking]:
    made = Blocking()
    yield made
    made.released.set()


def seconds_of(close: Callable[[], None]) -> float:
    """How long it takes; the test goes on where it hangs."""
    started = time.monotonic()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            close()
        except BaseException as error:  # noqa: BLE001 - raised below
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10 * CLOSE_S)
    assert not thread.is_alive(), "it hangs"
    if raised:
        raise raised[0]
    return time.monotonic() - started


def held(topic: str = "T", queue_id: int = 0) -> PullRequest:
    return PullRequest("g", topic, queue_id, 0, 32, expression="*", suspend_timeout_ms=30_000)


def waits(broker, count: int) -> bool:
    return bool(broker._puller.held.count == count)


def test_the_answer_of_a_pull_blocks_the_thread_that_looks(broker, blocking, caplog):
    caplog.set_level(logging.WARNING, "rmqctl.broker")
    broker.update_topic(TopicConfig("T", 2, 2))
    broker.pull_async(held(), blocking)
    answers: list[object] = []
    other = threading.Thread(target=lambda: answers.append(broker.pull(held(queue_id=1))))
    other.start()
    eventually(lambda: waits(broker, 2))
    broker.send(Message("T", b"x"), 0)
    assert blocking.begun.wait(20)
    assert seconds_of(broker.close) < CLOSE_S + BUSY_S
    other.join(20)
    assert len(answers) == 1  # a pull that waits is answered, whatever the other one does
    assert "pull" in caplog.text


@pytest.mark.parametrize("count", [1, 3])
def test_answers_block_the_thread_that_closes(broker, blocking, count):
    broker.update_topic(TopicConfig("T", 4, 4))
    for queue_id in range(count):
        broker.pull_async(held(queue_id=queue_id), blocking)
    answers: list[object] = []
    other = threading.Thread(target=lambda: answers.append(broker.pull(held(queue_id=3))))
    other.start()
    eventually(lambda: waits(broker, count + 1))
    assert seconds_of(broker.close) < CLOSE_S + BUSY_S
    assert blocking.begun.is_set()
    other.join(20)
    assert len(answers) == 1


class BlockingClient(RecordingClient):
    """A client that does not return from a notice."""

    def __init__(self, blocking: Blocking) -> None:
        super().__init__()
        self.blocking = blocking

    def notify_consumer_ids_changed(self, group: str) -> None:
        self.blocking()

    def reset_offset(self, *_: object) -> None:
        self.blocking()


@pytest.mark.slow
def test_a_client_blocks_in_a_notice_of_members(broker, open_broker, blocking, caplog):
    caplog.set_level(logging.WARNING, "rmqctl.broker")
    broker.connect("a", BlockingClient(blocking))
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    assert blocking.begun.wait(20)
    assert seconds_of(broker.close) < CLOSE_S + BUSY_S
    assert "notices" in caplog.text
    blocking.released.set()
    with pytest.raises(StoreClosedError):
        broker.send(Message("T", b"x"))
    assert open_broker().consumer_ids("g") == []


@pytest.mark.slow
def test_a_client_blocks_in_a_notice_of_a_reset(broker, blocking):
    broker.update_topic(TopicConfig("T", 1, 1))
    client = BlockingClient(blocking)
    client.notify_consumer_ids_changed = lambda group: None  # type: ignore[method-assign]
    broker.connect("a", client)
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    broker.progress.move("g", {("T", 0): 0})
    assert blocking.begun.wait(20)
    broker.note_consumer_offset("g", OffsetCommit("T", 0, 5, 1))
    root = broker.view.root
    assert seconds_of(broker.close) < CLOSE_S + BUSY_S
    with MessageStore.open(root) as store:
        assert store.recovery is None  # the store was closed cleanly all the same


@pytest.mark.slow
def test_all_kinds_of_callbacks_block_at_once(broker, blocking):
    broker.start_services()
    broker.update_topic(TopicConfig("T", 2, 2))
    broker.connect("a", BlockingClient(blocking))
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    answering = Blocking()
    broker.pull_async(held(), answering)
    broker.pull_async(held(queue_id=1), answering)
    eventually(lambda: waits(broker, 2))
    broker.send(Message("T", b"x"), 0)
    try:
        assert blocking.begun.wait(20)
        assert answering.begun.wait(20)
        assert seconds_of(broker.close) < CLOSE_S + BUSY_S
    finally:
        answering.released.set()


@pytest.mark.slow
def test_what_is_done_about_a_death_blocks(broker, blocking):
    notices = Notices(broker.view.root, lambda letter: None, lambda letter: None, blocking)
    notices.open()
    with broker_puppet(broker.view.root) as other:
        other.call("join", client_id="b", group="g")
        other.kill()
    assert blocking.begun.wait(20)
    assert seconds_of(lambda: notices.close(lambda: None)) < CLOSE_S + BUSY_S
    assert notices.processes.living() == []


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("batches", [1, 4])
def test_listeners_block_beside_a_consumer_that_is_not_shut_down(
    broker, blocking, orderly, batches
):
    def listen(messages, context):
        blocking()
        return (
            ConsumeOrderlyStatus.SUCCESS if orderly else ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        )

    broker.update_topic(TopicConfig("T", 4, 4))
    push = PushConsumer("g", brokers=[broker], config=ConsumerConfig(consume_thread_min=2))
    push.subscribe("T")
    (push.register_message_listener_orderly if orderly else push.register_message_listener)(listen)
    push.start()
    for number in range(batches):
        broker.send(Message("T", b"x"), number)
    assert blocking.begun.wait(20)
    assert seconds_of(broker.close) < CLOSE_S + BUSY_S
    assert seconds_of(push.shutdown) < 2 * CLOSE_S + BUSY_S


@pytest.mark.slow
def test_another_process_is_stopped_with_the_lock_of_the_progress(broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.note_consumer_offset("g", OffsetCommit("T", 0, 5))
    lock = broker.view.root / "rmqctl" / "offsets.lock"
    with Holder(lock, 0), pytest.raises(StoreError, match="offsets"):
        assert seconds_of(broker.close) < CLOSE_S + BUSY_S
    with MessageStore.open(broker._store.root) as store:
        assert store.recovery is None


@pytest.mark.slow
def test_another_process_is_stopped_with_the_gate(broker):
    broker.start_services()
    broker.send(Message("T", b"x"))
    with Holder(broker.view.root / "lock", 1):
        started = time.monotonic()
        with pytest.raises(StoreError, match="held by"):
            seconds_of(broker.close)
        assert time.monotonic() - started < CLOSE_S + BUSY_S


class Holder:
    """Another process that holds the lock of a byte, and is stopped."""

    def __init__(self, path, byte: int) -> None:
        self.words = [
            *(sys.executable, "-c"),
            "import sys, time\nfrom pathlib import Path\n"
            "from storage.coordination.locks import LockFile\n"
            "lock = LockFile(Path(sys.argv[1]))\nlock.lock(int(sys.argv[2]))\n"
            "print(flush=True)\ntime.sleep(60)",
            *(str(path), str(byte)),
        ]

    def __enter__(self) -> None:
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()
        self.process.send_signal(signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.slow
def test_a_producer_of_its_own_beside_a_blocked_notice(open_broker, blocking):
    broker = open_broker(BrokerConfig())
    broker.connect("a", BlockingClient(blocking))
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    with Producer("p", brokers=[broker]) as producer:
        producer.send(Message("T", b"x"))
        assert blocking.begun.wait(20)
    assert seconds_of(broker.close) < CLOSE_S + BUSY_S
