"""A broker that was opened before a fork: it is shut in the child, and goes on in the parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from storage.config import SMALL_STORE
from storage.store import MessageStore

pytestmark = [pytest.mark.crash, pytest.mark.slow]

PROJECT = Path(__file__).parents[3]
DEADLINE_S = 60

_PROGRAM = """
import os, sys, threading
from broker.api.members import (
    ConsumeFromWhere, ConsumerData, ConsumeType, HeartbeatData, MessageModel
)
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.configs.topics import TopicConfig
from storage.errors import StoreClosedError
from storage.format.message import Message, MessageQueue

class Handler:
    def __getattr__(self, name):
        return lambda *_: None

store, has_client = sys.argv[1], sys.argv[2] == "with a client"
queue = MessageQueue("T", "broker-a", 0)

def beat(client_id):
    consumer = ConsumerData(
        "g",
        ConsumeType.CONSUME_PASSIVELY,
        MessageModel.CLUSTERING,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    )
    return HeartbeatData(client_id, (), (consumer,))

def uses(opened):
    return {
        "connect": lambda: opened.connect("child", Handler()),
        "heartbeat": lambda: opened.heartbeat(beat("parent")),
        "unregister": lambda: opened.unregister_client("parent", None, "g"),
        "disconnect": lambda: opened.disconnect("parent"),
        "members": lambda: opened.consumer_ids("g"),
        "lock": lambda: opened.lock_queues("g", "parent", [queue]),
        "unlock": lambda: opened.unlock_queues("g", "parent", [queue]),
        "commit": lambda: opened.update_consumer_offsets("g", [OffsetCommit("T", 0, 2)]),
        "note": lambda: opened.note_consumer_offset("g", OffsetCommit("T", 0, 2)),
        "correct": lambda: opened.correct_consumer_offset("g", "T", 0),
        "query": lambda: opened.query_consumer_offset("g", "T", 0),
        "move": lambda: opened.progress.move("g", {("T", 0): 0}),
        "own work": opened.do_own_work,
        "services": opened.start_services,
        "topic": lambda: opened.update_topic(TopicConfig("U", 1, 1)),
        "send": lambda: opened.send(Message("T", b"child")),
        "wait": lambda: opened.wait_for_messages(0, 1_000),
    }

def not_refused(opened):
    for what, use in uses(opened).items():
        try:
            use()
        except StoreClosedError as error:
            assert str(error) == "the store was opened before a fork; open it in the child", error
        else:
            yield what

with EmbeddedBroker.open(store) as opened:
    opened.update_topic(TopicConfig("T", 1, 1))
    for number in range(3):
        opened.send(Message("T", b"%d" % number))
    if has_client:
        opened.connect("parent", Handler())
        opened.heartbeat(beat("parent"))
        assert opened.lock_queues("g", "parent", [queue]) == {queue}
    opened.note_consumer_offset("g", OffsetCommit("T", 0, 1))
    pid = os.fork()
    if pid == 0:
        found = [*not_refused(opened)]
        opened.close()
        if found:
            print("not refused:", *found, file=sys.stderr, flush=True)
        os._exit(1 if found else 0)
    deadline = threading.Timer(20, lambda: os.kill(pid, 9))
    deadline.start()
    _, status = os.waitpid(pid, 0)
    deadline.cancel()
    assert status == 0, status
    assert opened.consumer_ids("g") == (["parent"] if has_client else [])
    assert opened.query_consumer_offset("g", "T", 0).offset == 1
    if has_client:
        assert opened.lock_queues("g", "parent", [queue]) == {queue}
"""


@pytest.mark.parametrize("client", ["with a client", "without one"])
def test_a_broker_that_was_opened_before_a_fork_refuses_everything_in_the_child(
    tmp_path: Path, client: str
) -> None:
    store = tmp_path / "store"
    MessageStore.create(store, SMALL_STORE)
    command = [sys.executable, "-c", _PROGRAM, str(store), client]
    done = subprocess.run(
        command, cwd=PROJECT, timeout=DEADLINE_S, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
