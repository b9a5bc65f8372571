"""Offsets recovered from messages are never above the true ones, whatever happened to consumers."""

import random
import time
from contextlib import ExitStack

import pytest

from broker.offset.offset_move import progress_now
from broker.offset_recovery.recovery import LostProgress
from broker.offset_recovery.retry_evidence import given_back
from rmqctl.admin.store.trace_evidence import traced
from storage.config import SMALL_STORE
from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.failing_puppet import failing_puppet, open_quick

SETTLE_MS = 1_000
"""Our clients commit with each pull, so a second is plenty."""
QUEUES = 3


def true_offsets(root):
    table = progress_now(root).offsets()
    found: dict[tuple[str, str, int], int] = {}
    for key, queues in table.items():
        topic, group = split_topic_at_group(key) or ("", "")
        found |= {(group, topic, queue_id): offset for queue_id, offset in queues.items()}
    return found


def lose_everything(root):
    """All evidence of progress except the messages."""
    for name in ("config/consumerOffset.json", "config/consumerOffset.json.bak"):
        (root / name).unlink(missing_ok=True)
    for path in (root / "rmqctl").rglob("*"):
        if path.is_file() and ("offsets" in path.name or path.suffix in (".notes", ".jsonl")):
            path.unlink()


def assert_never_above(root, true):
    """What was recovered of groups whose progress is lost."""
    with StoreView.open(root) as view:
        events = sorted([*given_back(view), *traced(view)], key=lambda event: event.order)
        lost = LostProgress(view, events)
        assert not lost.present
        rows = {row.place: row for row in lost.recovered({}, settle_ms=SETTLE_MS)}
    for place, row in rows.items():
        assert row.offset is None or (0 < row.offset <= true[place]), (place, row, true)
    return rows


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.feature(115)
@pytest.mark.parametrize(
    ("orderly", "trace", "seed"),
    [
        pytest.param(False, False, 1, id="retries", marks=pytest.mark.long),
        pytest.param(False, True, 2, id="retries and traces"),
        pytest.param(True, False, 3, id="in order", marks=pytest.mark.long),
        pytest.param(True, True, 4, id="in order and traced", marks=pytest.mark.long),
    ],
)
def test_recovered_offsets_are_never_above_what_was_committed(tmp_path, orderly, trace, seed):
    root = tmp_path / "s"
    MessageStore.create(root, SMALL_STORE)
    chance = random.Random(seed)
    kinds = ["fail", "flaky", "slow", "slow fail", "ok", "ok", "ok"]

    def send(broker, count):
        for _ in range(count):
            broker.send(Message("T", chance.choice(kinds).encode()), chance.randrange(1, QUEUES))
            broker.send(Message("T", b"fail"), 0)

    with ExitStack() as stack:
        broker = stack.enter_context(open_quick(root))
        broker.update_topic(TopicConfig("T", QUEUES, QUEUES))
        send(broker, 5)
        members = []
        names = iter(range(100))

        def join():
            puppet = failing_puppet(root, "g", f"m{next(names)}", orderly=orderly, trace=trace)
            members.append(stack.enter_context(puppet))

        join()
        join()
        for turn in range(6):
            until = time.monotonic() + 0.7
            while time.monotonic() < until:
                send(broker, 1)
                time.sleep(0.05)  # the rate of a producer
            if turn in (1, 3):
                members.pop(chance.randrange(len(members))).kill()
                join()
        for member in members:
            member.kill()
    true = true_offsets(root)
    assert any(place[1] == "T" for place in true)
    lose_everything(root)
    rows = assert_never_above(root, true)
    assert rows
    if not orderly:
        first = rows["g", "T", 0]
        assert first.offset, "all messages of this queue were given back, so that is a bound"
