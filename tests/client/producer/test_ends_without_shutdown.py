"""A program that ends without ``shutdown``: what ``send_async`` took is stored, or it is said."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from client.producer.producer import Producer
from storage.config import SMALL_STORE
from storage.format.message import TRACE_TOPIC, Message, MessageExt
from storage.store import MessageStore

pytestmark = [pytest.mark.crash, pytest.mark.slow]

PROJECT = Path(__file__).parents[3]
DEADLINE_S = 60

_BEGIN = """
import atexit, multiprocessing, os, sys, threading
from rmqctl import Message, Producer, ProducerConfig

def send_many(store, threads=1, selector=None):
    producer = Producer.open(store, "p", ProducerConfig(async_sender_threads=threads))
    producer.start()
    for number in range(2_000):
        producer.send_async(Message("T", b"%d" % number), selector=selector)

def at_the_end(queues, message, arg):
    threading.main_thread().join()  # ends where the interpreter begins to end
    return queues[0]

store = sys.argv[1]
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    MessageStore.create(tmp_path / "store", SMALL_STORE)
    return tmp_path / "store"


def run(work: str, store: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _BEGIN + work, str(store)],
        cwd=PROJECT,
        timeout=DEADLINE_S,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )


def stored(store: Path, topic: str = "T") -> list[bytes]:
    found: list[MessageExt] = []
    with EmbeddedBroker.open(store, read_only=True) as broker:
        config = broker.topic(topic)
        for queue_id in range(0 if config is None else config.read_queue_nums):
            end = broker.max_offset(topic, queue_id)
            for offset in range(end):
                found += broker.view.get_message(topic, queue_id, offset, 1).messages
    return [message.body for message in found]


@pytest.mark.parametrize(
    ("work", "code"),
    [
        pytest.param("send_many(store)", 0, marks=pytest.mark.long),
        ("send_many(store, selector=at_the_end)", 0),
        ("send_many(store, threads=4)", 0),
        ("send_many(store)\nraise ValueError('of the program')", 1),
        pytest.param("send_many(store)\nsys.exit(3)", 3, marks=pytest.mark.long),
    ],
    ids=["end", "all wait", "four threads", "exception", "exit"],
)
def test_a_program_that_ends_without_shutdown_sends_what_waits(
    store: Path, work: str, code: int
) -> None:
    done = run(work, store)
    assert done.returncode == code, done.stderr
    assert sorted(map(int, stored(store))) == list(range(2_000))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_of_multiprocessing_sends_what_waits(store: Path, method: str) -> None:
    script = store.parent / "program.py"
    script.write_text(
        f"{_BEGIN}\nif __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context('{method}')\n"
        "    worker = context.Process(target=send_many, args=(store,))\n"
        "    worker.start()\n"
        "    worker.join(30)\n"
        "    sys.exit(worker.exitcode)\n"
    )
    command = [sys.executable, str(script), str(store)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, timeout=DEADLINE_S, check=False, env=environment)
    assert done.returncode == 0
    assert sorted(map(int, stored(store))) == list(range(2_000))


def test_a_forked_child_that_ends_sends_nothing_of_its_parent(store: Path) -> None:
    done = run(
        """
forked = threading.Event()

def choose(queues, message, arg):
    assert forked.wait(20)
    return queues[0]

send_many(store, selector=choose)
pid = os.fork()
if pid == 0:
    sys.exit(0)
_, status = os.waitpid(pid, 0)
assert status == 0, status
forked.set()
""",
        store,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(map(int, stored(store))) == list(range(2_000))


def test_a_send_that_does_not_end_does_not_keep_the_program(store: Path) -> None:
    done = run(
        """
entered = threading.Event()

def choose(queues, message, arg):
    entered.set()
    threading.Event().wait()

producer = Producer.open(store, "p", ProducerConfig(async_sender_threads=1))
producer.start()
producer.send_async(Message("T", b"0"), selector=choose)
assert entered.wait(20)
producer.send_async(Message("T", b"1"), on_exception=lambda error: print("given up:", error))
""",
        store,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "given up: producer p has ended before it could send\n"
    assert "1 task(s) have not ended" in done.stderr
    assert stored(store) == []


def test_sends_that_fail_while_the_program_ends_are_reported(store: Path) -> None:
    done = run(
        """
def fail(queues, message, arg):
    at_the_end(queues, message, arg)
    raise ValueError("no queue is right")

send_many(store, selector=fail)
""",
        store,
    )
    assert done.returncode == 0
    said = "producer p: 2,000 asynchronous sends failed while the program ended; the first error: "
    assert done.stderr == f"{said}no queue is right\n"


def test_a_send_of_what_runs_last_is_made(store: Path) -> None:
    """What is registered first runs last: after the producer has sent what waits."""
    done = run(
        """
producer = Producer.open(store, "p")
atexit.register(lambda: producer.send_async(Message("T", b"last")))
producer.start()
producer.send_async(Message("T", b"first"))
""",
        store,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(stored(store)) == [b"first", b"last"]


def test_a_send_of_what_runs_last_that_fails_is_reported(store: Path) -> None:
    done = run(
        """
producer = Producer.open(store, "p")
atexit.register(lambda: producer.send_async(Message("no topic!", b"last")))
producer.start()
producer.send_async(Message("T", b"first"))
""",
        store,
    )
    assert (done.returncode, stored(store)) == (0, [b"first"])
    said = "producer p: 1 asynchronous send failed while the program ended; the first error: "
    assert done.stderr.startswith(said), done.stderr


@pytest.mark.parametrize("send", ["send", "send_async"])
def test_traces_that_wait_are_sent(store: Path, send: str) -> None:
    done = run(
        f"""
producer = Producer.open(store, "p", ProducerConfig(enable_msg_trace=True))
producer.start()
for number in range(3):
    producer.{send}(Message("T", b"x", keys="order-%d" % number))
""",
        store,
    )
    assert done.returncode == 0, done.stderr
    assert len(stored(store)) == 3
    traces = b"".join(stored(store, TRACE_TOPIC))
    assert [traces.count(b"order-%d" % number) for number in range(3)] == [1, 1, 1]


def test_a_producer_that_was_shut_down_leaves_nothing_for_the_end(store: Path) -> None:
    with Producer.open(store, "p") as producer:
        for _ in range(2):
            producer.send_async(Message("T", b"1")).result(20)
    at_exit = weakref.ref(producer._at_exit)
    assert at_exit() is not None
    del producer
    gc.collect()
    assert at_exit() is None
