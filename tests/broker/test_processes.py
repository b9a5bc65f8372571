"""Brokers of several processes over one folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest, PullStatus
from storage.configs.topics import TopicConfig

PROJECT = Path(__file__).parents[2]

# Sends numbered messages until it is killed or done; says on stdout which were acknowledged.
PRODUCER = """
import os, sys
from broker.embedded.broker import EmbeddedBroker
from storage.format.message import Message
root, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with EmbeddedBroker.open(root) as broker:
    for n in range(count):
        broker.send(Message("T", b"%s-%d" % (name.encode(), n), keys=f"{name}-{n}"))
        os.write(1, b"%d\\n" % n)
"""


def producer(root: Path, name: str, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PRODUCER, str(root), name, str(count)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        cwd=PROJECT,
    )


@pytest.mark.crash
def test_a_group_sees_each_message_of_killed_producers_once(broker):
    broker.update_topic(TopicConfig("T", 2, 2))
    victim = producer(broker.view.root, "victim", 1_000_000)
    steady = producer(broker.view.root, "steady", 400)
    seen: list[bytes] = []
    offsets = [0, 0]
    known = broker.wait_for_messages(None, 0)

    def consume() -> int:
        count = 0
        for queue_id, offset in enumerate(offsets):
            commit = OffsetCommit("T", queue_id, offset)
            answer = broker.pull(PullRequest("g", "T", queue_id, offset, commit=commit))
            if answer.pull_status is PullStatus.FOUND:
                assert [m.queue_offset for m in answer.messages] == list(
                    range(offset, answer.next_begin_offset)
                )
                seen.extend(m.body for m in answer.messages)
                offsets[queue_id] = answer.next_begin_offset
                count += len(answer.messages)
        return count

    while sum(body.startswith(b"victim") for body in seen) < 200:
        if not consume():
            known = broker.wait_for_messages(known, 5_000, "T")
    victim.kill()
    acknowledged, _ = victim.communicate()
    finished, _ = steady.communicate(timeout=60)
    assert steady.returncode == 0
    assert finished.count(b"\n") == 400
    while consume():
        pass
    assert len(seen) == len(set(seen))
    assert {b"steady-%d" % n for n in range(400)} <= set(seen)
    assert {b"victim-" + line for line in acknowledged.split()} <= set(seen)
    stored = [int(b.split(b"-")[1]) for b in seen if b.startswith(b"victim")]
    assert len(stored) - len(acknowledged.split()) in (0, 1)  # one may lack its acknowledgement
    assert [m.body for m in broker.query_message("T", "steady-399").messages] == [b"steady-399"]
    broker.progress.persist()
    assert broker.consumer_offsets() == {("g", "T"): dict(enumerate(offsets))}
