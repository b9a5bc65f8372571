"""Giving many messages back at once: the store is left as if each had been given back alone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from broker.api.failure_reason import FAILURE_CLASS
from broker.api.send_back import SendBackRequest
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.errors import BrokerSystemError, MessageIllegalError, NoPermissionError
from broker.retry.send_back import BATCH_BYTES, SendBackHandler
from broker.send.message_builder import MessageBuilder
from broker.tables.groups import GroupManager
from broker.tables.topics import TopicManager
from storage.config import SMALL_STORE
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import PERM_READ, TopicConfig
from storage.errors import RocketMQError
from storage.format.delay import parse_delay_levels
from storage.format.message import SCHEDULE_TOPIC, Message, MessageExt
from storage.results import PutMessageResult, PutMessageStatus
from storage.store import MessageStore
from tests.support.copies import copy_store
from tests.support.examples import examples
from tests.support.same_records import Taken, all_messages

START = 1_700_000_000_000
SHORT_FILES = replace(SMALL_STORE, mapped_file_size_commit_log=32 << 10)
GROUPS = ("g", "other", "dropping", "refused")
SENT = 6


def clock() -> int:
    return START


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, list[int]]:
    """A store with messages of all kinds, and where they lie in its log."""
    root = tmp_path_factory.mktemp("made") / "store"
    MessageStore.create(root, SHORT_FILES)
    with EmbeddedBroker.open(root, clock=clock) as broker:
        broker.update_group(SubscriptionGroupConfig("dropping", retry_queue_nums=0))
        broker.update_topic(TopicConfig("%RETRY%refused", 1, 1, PERM_READ))
        for number in range(SENT):
            properties = {"UNIQ_KEY": f"id-{number}", "mine": "x" * number}
            body = bytes([number]) * 3_000
            broker.send(Message("T", body, tags="A", keys=f"k{number} l", properties=properties), 0)
        for _ in range(2):
            for message in all_messages(broker.view):
                broker.send_message_back(SendBackRequest("g", "T", message.commitlog_offset, ""))
        places = [message.commitlog_offset for message in all_messages(broker.view)]
    return root, places


def given_back(made: Path, root: Path, requests, all_at_once: bool) -> list[str | None]:
    """Give back in a copy of the store; gives what was refused, and why."""
    copy_store(made, root)
    with EmbeddedBroker.open(root, clock=clock) as broker:
        if all_at_once:
            found = broker.send_messages_back(requests)
            return [None if refusal is None else repr(refusal) for refusal in found]
        refusals: list[str | None] = []
        for request in requests:
            try:
                broker.send_message_back(request)
            except RocketMQError as error:
                refusals.append(repr(error))
            else:
                refusals.append(None)
        return refusals


def content(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("commitlog", "consumequeue", "index")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and folder != "index"
    } | {"index": b"".join(p.read_bytes() for p in sorted((root / "index").iterdir()))}


@pytest.mark.slow
@settings(max_examples=examples(50), deadline=None)
@given(data=st.data())
def test_many_at_once_leave_what_one_after_the_other_leave(made, tmp_path_factory, data):
    root, places = made
    requests = data.draw(
        st.lists(
            st.builds(
                SendBackRequest,
                st.sampled_from(GROUPS),
                st.just("T"),
                st.sampled_from([*places, 1]),
                st.just(""),
                st.sampled_from([-1, 0, 1, 3, 99]),
                st.sampled_from([None, 0, 1, 16]),
                st.sampled_from([{}, {FAILURE_CLASS: "E"}, {"REAL_TOPIC": "pretends"}]),
            ),
            max_size=20,
        )
    )
    folder = tmp_path_factory.mktemp("two")
    alone = given_back(root, folder / "alone", requests, all_at_once=False)
    together = given_back(root, folder / "together", requests, all_at_once=True)
    assert together == alone
    assert content(folder / "together") == content(folder / "alone")
    shutil.rmtree(folder)


def test_what_is_refused_hinders_no_other(broker):
    broker.send(Message("T", b"body"), 0)
    (message,) = all_messages(broker.view)
    fine = SendBackRequest("g", "T", message.commitlog_offset, "")
    first, lost, last = broker.send_messages_back([fine, fine._replace(commitlog_offset=1), fine])
    assert first is None
    assert last is None
    assert isinstance(lost, BrokerSystemError)
    assert broker.max_offset(SCHEDULE_TOPIC, 2) == 2
    assert broker.send_messages_back([]) == []


def test_one_that_is_too_long_with_what_a_retry_adds_hinders_no_other(tmp_path):
    root = tmp_path / "store"
    MessageStore.create(root, SHORT_FILES)
    with EmbeddedBroker.open(root) as broker:
        longest = SHORT_FILES.mapped_file_size_commit_log
        while True:  # until the record just fits into a file of the log
            longest -= 1
            try:
                broker.send(Message("T", bytes(longest)), 0)
            except RocketMQError:
                continue
            break
        broker.send(Message("T", b"short"), 0)
        requests = [
            SendBackRequest("g", "T", message.commitlog_offset, "")
            for message in all_messages(broker.view)
        ]
        refusals = broker.send_messages_back(requests)
        assert [refusal is None for refusal in refusals] == [False, True]
        assert broker.max_offset(SCHEDULE_TOPIC, 2) == 1


def test_one_that_can_not_be_read_hinders_no_other(root):
    def look(offset: int) -> MessageExt:
        if offset == 1:
            raise OSError(5, "Input/output error")
        return MessageExt("T", b"x")

    handler = handler_over(root, Refusing(), look)
    refusals = handler.send_messages_back([SendBackRequest("g", "T", n, "") for n in range(3)])
    assert [type(refusal) for refusal in refusals] == [type(None), BrokerSystemError, type(None)]
    assert "the message at 1 of the commit log cannot be read" in str(refusals[1])


def test_a_broker_that_may_not_write_refuses_each(open_broker):
    open_broker().send(Message("T", b"body"), 0)
    reader = open_broker(read_only=True)
    requests = [SendBackRequest("g", "T", 0, "")] * 2
    refusals = reader.send_messages_back(requests)
    assert [type(refusal) for refusal in refusals] == [NoPermissionError] * 2


class Refusing(Taken):
    """A put that notes the size of its batches, and may have no room."""

    def __init__(self, status: PutMessageStatus | None = None) -> None:
        super().__init__()
        self.status = status
        self.puts: list[int] = []

    def __call__(self, records, *, whole=False):
        self.puts.append(len(records))
        if self.status is not None:
            return PutMessageResult(self.status, reason="why")
        return super().__call__(records, whole=whole)


def handler_over(root: Path, put: Taken, look) -> SendBackHandler:
    config = BrokerConfig()
    with MessageStore.open(root) as store:
        topics = TopicManager(root, config, write_lock=store.write_lock, queues=list, now=clock)
        groups = GroupManager(root, config, write_lock=store.write_lock, now=clock)
        topics.for_own_use("%RETRY%g", 1)
        groups.for_use("g")
    builder = MessageBuilder(config, parse_delay_levels(), 4 << 20)
    return SendBackHandler(config, topics, groups, builder, put=put, read_message=look)


def test_what_the_store_does_not_take_is_told_of_each(root):
    put = Refusing(PutMessageStatus.SERVICE_NOT_AVAILABLE)
    handler = handler_over(root, put, lambda offset: MessageExt("T", b"x"))
    refusals = handler.send_messages_back([SendBackRequest("g", "T", n, "") for n in range(3)])
    assert [type(refusal) for refusal in refusals] == [BrokerSystemError] * 3
    assert [str(refusal) for refusal in refusals] == ["why"] * 3
    assert put.puts == [3]


def test_the_one_that_the_store_refuses_is_put_once(root):
    put = Refusing(PutMessageStatus.MESSAGE_ILLEGAL)
    handler = handler_over(root, put, lambda offset: MessageExt("T", b"x"))
    request = SendBackRequest("g", "T", 0, "")
    (refusal,) = handler.send_messages_back([request])
    assert isinstance(refusal, BrokerSystemError)
    assert put.puts == [1]
    handler.send_messages_back([request] * 2)
    assert put.puts == [1, 2, 1, 1]


class Illegal(Refusing):
    """A put that finds more than one record illegal together."""

    def __call__(self, records, *, whole=False):
        if len(records) > 1:
            raise MessageIllegalError("one of them is too long")
        return super().__call__(records, whole=whole)


def test_where_one_is_illegal_each_is_put_alone(root):
    put = Illegal()
    handler = handler_over(root, put, lambda offset: MessageExt("T", b"x"))
    assert handler.send_messages_back([SendBackRequest("g", "T", 0, "")] * 2) == [None, None]
    assert put.puts == [1, 1]


def test_a_put_ends_where_it_would_hold_others_up(root):
    put = Refusing()
    handler = handler_over(root, put, lambda offset: MessageExt("T", bytes(BATCH_BYTES // 2)))
    refusals = handler.send_messages_back([SendBackRequest("g", "T", n, "") for n in range(7)])
    assert refusals == [None] * 7
    assert put.puts == [3, 3, 1]
