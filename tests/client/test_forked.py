"""A forked child that leaves what its parent opened: it ends, and the parent goes on."""

from __future__ import annotations

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
from broker.embedded import EmbeddedBroker
from client import (
    Message,
    Producer,
    ProducerConfig,
    SendStatus,
)
from storage.configs.topics import TopicConfig
store, leaves = sys.argv[1:]
def child(leave):
    leave() if leaves == "by itself" else sys.exit(0)

def ended(pid):
    _, status = os.waitpid(pid, 0)
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


@pytest.mark.parametrize("leaves", ["by itself", "with the block"])
def test_a_forked_child_that_leaves_ends_and_its_parent_goes_on(
    tmp_path: Path, leaves: str
) -> None:
    store = tmp_path / "store"
    MessageStore.create(store, SMALL_STORE)
    command = [sys.executable, "-c", _BEGIN + _SENDER, str(store), leaves]
    done = subprocess.run(command, cwd=PROJECT, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0
