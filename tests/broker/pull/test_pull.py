"""What pulls are answered, and how long answers are held back."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.pull import PullRequest, PullStatus
from broker.config import BrokerConfig
from broker.errors import ResponseCode, SubscriptionParseError
from broker.filter.subscription import parse_subscription
from broker.pull.pull import pull_status
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.results import GetMessageStatus

G = GetMessageStatus


def request(offset: int = 0, **more: Any) -> PullRequest:
    return PullRequest("g", "T", 0, offset)._replace(**more)


@pytest.fixture
def topic(broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    return broker


@pytest.mark.conformance("D3")
@pytest.mark.parametrize(
    ("status", "offset", "answer"),
    [
        (G.FOUND, 0, "FOUND"),
        (G.NO_MATCHED_MESSAGE, 0, "NO_MATCHED_MSG"),
        (G.MESSAGE_WAS_REMOVING, 0, "NO_MATCHED_MSG"),
        (G.OFFSET_FOUND_NULL, 3, "NO_NEW_MSG"),
        (G.OFFSET_OVERFLOW_ONE, 3, "NO_NEW_MSG"),
        (G.OFFSET_OVERFLOW_BADLY, 3, "OFFSET_ILLEGAL"),
        (G.OFFSET_TOO_SMALL, 3, "OFFSET_ILLEGAL"),
        (G.NO_MESSAGE_IN_QUEUE, 0, "NO_NEW_MSG"),
        (G.NO_MESSAGE_IN_QUEUE, 3, "OFFSET_ILLEGAL"),
        (G.NO_MATCHED_LOGIC_QUEUE, 0, "NO_NEW_MSG"),
        (G.NO_MATCHED_LOGIC_QUEUE, 3, "OFFSET_ILLEGAL"),
    ],
)
def test_each_status_of_the_store_has_its_answer(status, offset, answer):
    assert pull_status(status, offset) == answer


@pytest.mark.conformance("D3")
def test_the_edges_of_a_queue(topic):
    empty = topic.pull(request())
    assert (empty.pull_status, empty.get_status, empty.next_begin_offset) == (
        PullStatus.NO_NEW_MSG,
        G.NO_MESSAGE_IN_QUEUE,
        0,
    )
    wrong = topic.pull(request(3))
    assert (wrong.pull_status, wrong.next_begin_offset) == (PullStatus.OFFSET_ILLEGAL, 0)
    topic.send_batch([Message("T", b"%d" % n) for n in range(40)])
    found = topic.pull(request())
    assert (found.pull_status, found.next_begin_offset, found.min_offset, found.max_offset) == (
        PullStatus.FOUND,
        32,
        0,
        40,
    )
    assert [m.body for m in found.messages] == [b"%d" % n for n in range(32)]
    end = topic.pull(request(40))
    assert (end.pull_status, end.get_status) == (PullStatus.NO_NEW_MSG, G.OFFSET_OVERFLOW_ONE)
    beyond = topic.pull(request(41))
    assert (beyond.pull_status, beyond.next_begin_offset) == (PullStatus.OFFSET_ILLEGAL, 40)
    negative = topic.pull(request(-1))
    assert (negative.pull_status, negative.get_status) == (
        PullStatus.OFFSET_ILLEGAL,
        G.OFFSET_TOO_SMALL,
    )


@pytest.mark.parametrize(("asked", "given"), [(-1, 1), (0, 1), (1, 1), (7, 7), (500, 32)])
def test_at_least_one_and_at_most_32_messages_are_given(topic, asked, given):
    topic.send_batch([Message("T", b"x") for _ in range(40)])
    assert len(topic.pull(request(max_msg_nums=asked)).messages) == given


@pytest.mark.conformance("D4")
def test_tags_are_compared_by_hash_here_and_by_text_at_the_client(topic):
    tags = ["Aa", "BB", "A", None, "polygenelubricants"]
    topic.send_batch([Message("T", b"x", tags=tag) for tag in tags])
    found = topic.pull(request(expression="Aa || A"))
    assert [m.tags for m in found.messages] == ["Aa", "BB", "A"]  # "Aa" and "BB" hash alike
    assert found.next_begin_offset == 5
    subscription = parse_subscription("Aa || A")
    assert subscription is not None
    assert [m.tags for m in found.messages if subscription.accepts(m.tags)] == ["Aa", "A"]
    lowest = topic.pull(request(expression="polygenelubricants"))
    assert [m.queue_offset for m in lowest.messages] == [4]


@pytest.mark.conformance("D4")
def test_nothing_of_the_subscription_moves_the_offset_on(topic):
    topic.send_column("T", [b"x"] * 3000, properties={"TAGS": "other"})
    offset, answers = 0, 0
    while (answer := topic.pull(request(offset, expression="mine"))).pull_status != "NO_NEW_MSG":
        assert answer.pull_status is PullStatus.NO_MATCHED_MSG
        assert answer.next_begin_offset > offset
        offset = answer.next_begin_offset
        answers += 1
    assert offset == 3000
    assert answers == 4  # 800 units a pull


@pytest.mark.parametrize(
    ("expression", "kind"), [("||", "TAG"), (" || ", "TAG"), ("a >", "SQL92"), ("a", "sql")]
)
def test_expressions_that_can_not_be_read_are_refused(topic, expression, kind):
    with pytest.raises(SubscriptionParseError) as caught:
        topic.pull(request(expression=expression, expression_type=kind))
    assert caught.value.code is ResponseCode.SUBSCRIPTION_PARSE_FAILED


@pytest.mark.conformance("G7")
def test_a_commit_comes_with_a_pull(topic):
    topic.send(Message("T", b"x"))
    topic.pull(request(commit=OffsetCommit("T", 0, 1)))
    assert topic.query_consumer_offset("g", "T", 0) == (1, 0, True)
    assert topic.consumer_offsets() == {("g", "T"): {0: 1}}


def in_thread(work):
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(work()), daemon=True)
    thread.start()
    return thread, done


@pytest.mark.conformance("D7")
def test_a_held_pull_is_answered_when_its_message_comes(topic, open_broker):
    other = open_broker()
    started = time.monotonic()
    thread, done = in_thread(lambda: topic.pull(request(suspend_timeout_ms=20_000)))
    topic.wait_for_messages(0, 20)  # let it come to rest; either order must work
    other.send(Message("T", b"now"))
    thread.join(10)
    assert [m.body for m in done[0].messages] == [b"now"]
    assert time.monotonic() - started < 5


def test_a_held_pull_sleeps_through_messages_of_other_queues(topic):
    topic.update_topic(TopicConfig("U", 1, 1))
    thread, done = in_thread(lambda: topic.pull(request(suspend_timeout_ms=20_000)))
    topic.wait_for_messages(0, 20)
    topic.send(Message("U", b"not this"))
    thread.join(0.1)
    assert thread.is_alive()
    topic.send(Message("T", b"this"))
    thread.join(10)
    assert [m.body for m in done[0].messages] == [b"this"]


def test_many_pulls_are_held_at_once(topic, open_broker):
    topic.update_topic(TopicConfig("U", 4, 4))
    held = [
        in_thread(lambda q=q: topic.pull(PullRequest("g", "U", q, 0, suspend_timeout_ms=20_000)))
        for q in range(4)
    ]
    topic.wait_for_messages(0, 20)
    other = open_broker()
    for q in (2, 0, 3, 1):
        other.send(Message("U", b"%d" % q), q)
    for q, (thread, done) in enumerate(held):
        thread.join(10)
        assert [m.body for m in done[0].messages] == [b"%d" % q]


@pytest.mark.conformance("D7")
def test_a_held_pull_gives_up_at_its_time(topic, open_broker):
    started = time.monotonic()
    answer = topic.pull(request(suspend_timeout_ms=150))
    assert answer.pull_status is PullStatus.NO_NEW_MSG
    assert 0.14 <= time.monotonic() - started < 3
    impatient = open_broker(BrokerConfig(max_suspend_timeout_ms=10))
    impatient.pull(request(suspend_timeout_ms=60_000))
    assert time.monotonic() - started < 6


@pytest.mark.conformance("D7")
def test_only_nothing_new_is_held(topic):
    topic.send(Message("T", b"x", tags="other"))
    started = time.monotonic()
    for answer, status in [
        (topic.pull(request(suspend_timeout_ms=30_000)), "FOUND"),
        (topic.pull(request(suspend_timeout_ms=30_000, expression="mine")), "NO_MATCHED_MSG"),
        (topic.pull(request(9, suspend_timeout_ms=30_000)), "OFFSET_ILLEGAL"),
    ]:
        assert answer.pull_status == status
    assert time.monotonic() - started < 5


def test_waiting_for_messages_tells_when_to_look(topic, open_broker):
    known = topic.wait_for_messages(None, 0)
    assert topic.wait_for_messages(known, 10) == known
    open_broker().send(Message("T", b"x"))
    later = topic.wait_for_messages(known, 10_000)
    assert later > known


def test_columns_are_pulled_without_objects(topic):
    topic.send_column("T", [b"%d" % n for n in range(100)])
    batch = topic.pull_column("T", 0, 10, 50)
    assert batch.stored_bodies == [b"%d" % n for n in range(10, 60)]
    assert batch.next_begin_offset == 60
