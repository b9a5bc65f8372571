"""A forked child that leaves what its parent opened: it ends, and the parent goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.config import SMALL_STORE
from storage.store import MessageStore

pytestmark = [pytest.mark.crash, pytest.mark.slow]

PROJECT = Path(__file__).parents[2]
DEADLINE_S = 60

_BEGIN = """
import os, sys, threading
from rmqctl import (
    ConsumeConcurrentlyStatus,
    ConsumerConfig,
    LitePullConsumer,
    Message,
    Producer,
    ProducerConfig,
    PushConsumer,
    SendStatus,
)
store, leaves = sys.argv[1:]
def child(leave):
    leave() if leaves == "by itself" else sys.exit(0)

def ended(pid):
    deadline = threading.Timer(20, lambda: os.kill(pid, 9))
    deadline.start()
    _, status = os.waitpid(pid, 0)
    deadline.cancel()
    assert status == 0, status
"""
_SENDER = """
entered, go_on = threading.Semaphore(0), threading.Event()

def choose(queues, message, arg):
    entered.release()
    assert go_on.wait(20)
    return queues[0]

with Producer.open(store, "p", ProducerConfig(async_sender_threads=1)) as producer:
    producer.send(Message("T", b"0"))
    futures = [producer.send_async(Message("T", b"x"), selector=choose) for _ in range(3)]
    assert entered.acquire(timeout=20)
    pid = os.fork()
    if pid == 0:
        new = producer.send_async(Message("T", b"new"))
        assert "fork" in str(new.exception(20)), new
        producer.shutdown()
        for future in futures[1:]:
            error = future.exception(20)
            assert "has ended before it could send" in str(error), error
        child(lambda: os._exit(0))
    ended(pid)
    go_on.set()
    assert [future.result(20).send_status for future in futures] == [SendStatus.SEND_OK] * 3
"""


_CONSUMERS = """
heard = threading.Event()

def listen(messages, context):
    heard.set()
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

with Producer.open(store, "p") as producer:
    producer.send(Message("T", b"0"))
    pushed = PushConsumer.open(store, "g")
    pushed.subscribe("T")
    pushed.register_message_listener(listen)
    polled = LitePullConsumer.open(store, "l")
    polled.subscribe("T")
    with pushed, polled:
        assert heard.wait(20)
        for _ in range(5):  # each of them has other locks that are held
            polled.poll(0)
            pid = os.fork()
            if pid == 0:
                child(lambda: (polled.shutdown(), pushed.shutdown(), os._exit(0)))
            ended(pid)
        heard.clear()
        producer.send(Message("T", b"1"))
        assert heard.wait(20)
"""
_ITS_OWN = """
config = ConsumerConfig(
    message_model="BROADCASTING", consume_from_where="CONSUME_FROM_FIRST_OFFSET"
)

def consume(group):
    heard = threading.Event()

    def listen(messages, context):
        heard.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer.open(store, group, config)
    consumer.subscribe("T")
    consumer.register_message_listener(listen)
    return consumer, heard

with Producer.open(store, "p") as producer:
    producer.send(Message("T", b"0"))
    with consume("b")[0]:
        pid = os.fork()
        if pid == 0:
            consumer, heard = consume("b")
            with Producer.open(store, "p") as mine, consumer:
                mine.send(Message("T", b"child"))
                assert heard.wait(20)
            child(lambda: os._exit(0))
        ended(pid)
        producer.send(Message("T", b"1"))
"""


@pytest.mark.parametrize(
    ("work", "leaves"),
    [
        pytest.param(_SENDER, "by itself", id="send, by itself"),
        pytest.param(_SENDER, "with the block", id="send", marks=pytest.mark.long),
        pytest.param(_CONSUMERS, "by itself", id="consume, by itself", marks=pytest.mark.long),
        pytest.param(_CONSUMERS, "with the block", id="consume"),
        pytest.param(_ITS_OWN, "by itself", id="open, by itself", marks=pytest.mark.long),
        pytest.param(_ITS_OWN, "with the block", id="open"),
    ],
)
def test_a_forked_child_that_leaves_ends_and_its_parent_goes_on(
    tmp_path: Path, work: str, leaves: str
) -> None:
    store = tmp_path / "store"
    MessageStore.create(store, SMALL_STORE)
    command = [sys.executable, "-c", _BEGIN + work, str(store), leaves]
    environment = {**os.environ, "HOME": str(tmp_path)}  # where broadcasters keep progress
    done = subprocess.run(command, cwd=PROJECT, timeout=DEADLINE_S, check=False, env=environment)
    assert done.returncode == 0


_IN_THE_CHILD = """
def opened(kind):
    if kind == "producer":
        return Producer.open(store, "g")
    consumer = {"push": PushConsumer, "lite": LitePullConsumer, "pull": PullConsumer}[kind]
    consumer = consumer.open(store, "g")
    if kind == "push":
        consumer.register_message_listener(
            lambda messages, context: ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        )
    if kind == "pull":
        consumer.register_topic("T")
    else:
        consumer.subscribe("T")
    return consumer

def files():
    logs = [path for path in (Path(store) / "rmqctl").iterdir() if path.suffix == ".log"]
    settings = [*(Path(store) / "config").iterdir(), *logs]
    members = sorted(path.name for path in (Path(store) / "rmqctl/members").iterdir())
    return {path.name: path.read_bytes() for path in settings}, members

with Producer.open(store, "p") as producer:
    producer.send(Message("T", b"0"))
    with opened("lite"):
        pass  # the group and its retry topic are there
    made = opened(leaves)
    before = files()
    pid = os.fork()
    if pid == 0:
        try:
            made.start()
        except StoreClosedError as error:
            assert str(error) == "the store was opened before a fork; open it in the child"
        else:
            os._exit(3)
        assert made.state == "START_FAILED", made.state
        assert files() == before
        made.shutdown()
        sys.exit(0)
    ended(pid)
    assert files() == before
    with made:
        producer.send(Message("T", b"1"))
"""


@pytest.mark.parametrize(
    "kind",
    [
        "push",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("lite", "pull")),
        "producer",
    ],
)
def test_a_client_that_was_opened_before_a_fork_does_not_start_in_the_child(
    tmp_path: Path, kind: str
) -> None:
    store = tmp_path / "store"
    MessageStore.create(store, SMALL_STORE)
    begin = "from pathlib import Path\nfrom storage.errors import StoreClosedError\n" + _BEGIN
    begin += "from rmqctl import PullConsumer\n"
    command = [sys.executable, "-c", begin + _IN_THE_CHILD, str(store), kind]
    done = subprocess.run(command, cwd=PROJECT, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0
