"""Messages near the size of a commit log file that are stored again under a longer topic."""

from __future__ import annotations

import pytest

from broker.api.send import SendOptions
from broker.api.send_back import SendBackRequest
from broker.api.transactions import EndTransactionRequest, LocalTransactionState
from broker.embedded.broker import EmbeddedBroker
from broker.errors import MessageIllegalError
from broker.send.message_builder import Schedule, stored_again
from broker.send.send import prepared
from storage.config import StoreConfig
from storage.configs.delay_offsets import load_delay_offsets
from storage.configs.topics import TopicConfig
from storage.format.layout import MIN_RECORD_SIZE
from storage.format.message import (
    SCHEDULE_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
    Message,
)
from storage.format.sys_flag import MessageSysFlag
from storage.store import MessageStore
from tests.support.same_records import only

FILE = 1 << 16
TIGHT = StoreConfig(
    mapped_file_size_commit_log=FILE,
    mapped_file_size_consume_queue=20_000,
    max_hash_slot_num=100,
    max_index_num=400,
)
LONG = "L" * 100
TOPICS = (LONG, "t", "n" * len(SCHEDULE_TOPIC), "o" * (len(SCHEDULE_TOPIC) + 1))
PREPARED = SendOptions(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
COMMIT = LocalTransactionState.COMMIT_MESSAGE


class Clock:
    def __init__(self):
        self.now = 1_700_000_000_000

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def broker(tmp_path, clock):
    MessageStore.create(tmp_path / "tight", TIGHT)
    with EmbeddedBroker.open(tmp_path / "tight", clock=clock) as opened:
        opened.update_topic(TopicConfig("T", 1, 1))
        opened.update_topic(TopicConfig(LONG, 1, 1))
        yield opened


def bodies(broker, topic):
    return [message.body for message in messages(broker, topic)]


def messages(broker, topic, queue_id=0):
    end = broker.max_offset(topic, queue_id)
    found = [broker.view.get_message(topic, queue_id, at, 1).messages for at in range(end)]
    return [message for run in found for message in run]


def deliver(broker, clock, ms=1_000):
    clock.now += ms
    while broker.delayed.tick(clock.now) <= clock.now:
        pass


def largest_body(send, at_least=FILE - 2_000):
    """Find the largest body that ``send`` takes, and send it last; one byte more is refused."""
    taken, refused = at_least, FILE
    while refused - taken > 1:
        middle = (taken + refused) // 2
        try:
            send(b"x" * middle)
            taken = middle
        except MessageIllegalError:
            refused = middle
    with pytest.raises(MessageIllegalError, match="do not fit into a commit log file of 65536"):
        send(b"x" * refused)
    send(b"x" * taken)
    return taken


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("how", ["send", "send_column"])
def test_the_largest_delayed_message_that_is_taken_is_delivered(broker, clock, topic, how):
    def send(body):
        if how == "send":
            broker.send(Message(topic, body, keys="k", delay_time_level=1), 0)
        else:
            broker.send_column(topic, [b"", body], 0, keys=["", "k"], properties={"DELAY": "1"})

    size = largest_body(send)
    deliver(broker, clock)
    assert max(map(len, bodies(broker, topic))) == size
    assert sorted(bodies(broker, topic)) == sorted(
        message.body for message in messages(broker, SCHEDULE_TOPIC)
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_the_largest_half_message_that_is_taken_can_be_committed_after_checks(broker, clock, topic):
    broker.update_topic(TopicConfig(topic, 1, 1))

    def send(body):
        properties = {"TRAN_MSG": "true", "PGROUP": "p", "CHECK_IMMUNITY_TIME_IN_SECONDS": "100"}
        broker.send(Message(topic, body, properties=properties), 0, PREPARED)

    size = largest_body(send)
    for _ in range(15):
        clock.now += 60_000
        broker.transaction_checks.check()
    half = messages(broker, TRANS_HALF_TOPIC)[-1]
    assert half.get_property("TRANSACTION_CHECK_TIMES") == "15"
    broker.end_transaction(
        EndTransactionRequest("p", half.queue_offset, half.commitlog_offset, COMMIT)
    )
    assert list(map(len, bodies(broker, topic))) == [size]


def test_a_message_that_would_not_fit_into_its_retry_topic_is_not_given_back(broker, clock):
    size = largest_body(lambda body: broker.send(Message("T", body), 0))
    for body in (b"x" * size, b"x" * (size - 2_000)):
        broker.send(Message("T", body), 0)
    too_large, small = messages(broker, "T")[-2:]
    group = "g" * 40
    with pytest.raises(MessageIllegalError, match=r"%RETRY%g+$"):
        broker.send_message_back(
            SendBackRequest(group, "T", too_large.commitlog_offset, too_large.msg_id)
        )
    broker.send_message_back(SendBackRequest(group, "T", small.commitlog_offset, small.msg_id))
    deliver(broker, clock, 10_000)
    assert bodies(broker, f"%RETRY%{group}") == [small.body]


def back(message, group="g", delay_level=0):
    return SendBackRequest(group, message.topic, message.commitlog_offset, "", delay_level)


def largest_message(broker, topic):
    """Store the largest message that a topic takes."""
    largest_body(lambda body: broker.send(Message(topic, body), 0))
    return messages(broker, topic)[-1]


def test_the_refusal_of_a_retry_names_the_size_where_that_is_the_cause(broker):
    message = largest_message(broker, "T")
    at = message.commitlog_offset
    said = rf"at {at} of the commit log has no room for a retry: \d+ bytes do not fit into a commit"
    with pytest.raises(MessageIllegalError, match=said):
        broker.send_message_back(back(message))


def test_a_message_with_room_for_its_record_alone_becomes_a_dead_letter(broker):
    message = largest_message(broker, LONG)
    broker.send_message_back(back(message, delay_level=-1))
    letter = only(messages(broker, "%DLQ%g"))
    assert (letter.body, letter.properties) == (message.body, message.properties)


def test_the_refusal_of_a_dead_letter_that_fits_nowhere_says_how_the_group_gets_past_it(broker):
    message = largest_message(broker, "T")
    at = message.commitlog_offset
    said = (
        rf"at {at} of the commit log has no room as a dead letter, so its queue waits for it; "
        r"'rmqctl offset reset' moves group g past it: \d+ bytes do not fit into a commit log file"
    )
    with pytest.raises(MessageIllegalError, match=said):
        broker.send_message_back(back(message, delay_level=-1))


def test_each_message_near_the_size_of_a_file_is_a_retry_or_refused_for_its_own_sake(broker):
    size = len(largest_message(broker, "T").body)
    for room in range(0, 400, 5):  # the limits of the two topics of a retry are 11 bytes apart
        broker.send(Message("T", b"x" * (size - room)), 0)
    refusals = [broker.send_messages_back([back(it)])[0] for it in messages(broker, "T")[-80:]]
    kinds = [type(refusal) for refusal in refusals]
    taken = kinds.index(type(None))
    assert taken > 20
    assert kinds == [MessageIllegalError] * taken + [type(None)] * (80 - taken)


def put_too_large(broker, topic):
    """Store a message of level 1 that a broker without the rule has taken."""
    broker.send(Message("T", b"x", delay_time_level=18), 0)
    message = messages(broker, SCHEDULE_TOPIC, 17)[-1]
    properties = broker._builder.encode({**message.properties, "REAL_TOPIC": topic})
    inner = stored_again(message, SCHEDULE_TOPIC, 0, properties, schedule=Schedule(1, 1_000))
    room = FILE - 8 - len(properties) - MIN_RECORD_SIZE - len(SCHEDULE_TOPIC)
    broker.store.put(prepared([inner._replace(body=b"x" * room)]))


@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_stored_message_that_fits_nowhere_is_passed_over_and_those_behind_it_arrive(
    broker, clock, caplog, behind
):
    broker.send(Message("T", b"before", delay_time_level=1), 0)
    put_too_large(broker, LONG)
    for n in range(behind):
        broker.send(Message("T", b"%d" % n, delay_time_level=1), 0)
    deliver(broker, clock)
    assert bodies(broker, "T") == [b"before", *(b"%d" % n for n in range(behind))]
    assert bodies(broker, LONG) == []
    error = f"delay level 1 passes over its message 1, which is for topic {LONG}: "
    assert only([it for it in caplog.messages if it.startswith(error)]).endswith(
        "bytes do not fit into a commit log file of 65536 bytes"
    )
    broker.delayed.shutdown()
    assert load_delay_offsets(broker.store.root) == {1: 2 + behind}


def test_a_half_message_that_fits_nowhere_with_a_check_stays_and_the_next_is_asked_about(
    broker, clock, caplog
):
    half = {"TRAN_MSG": "true", "PGROUP": "p"}
    broker.send(Message("T", b"x", properties=half), 0, PREPARED)
    message = only(messages(broker, TRANS_HALF_TOPIC))
    room = FILE - 8 - len(message.property_bytes) - MIN_RECORD_SIZE - len(TRANS_HALF_TOPIC)
    inner = stored_again(message, TRANS_HALF_TOPIC, 0)._replace(body=b"x" * room)
    broker.store.put(prepared([inner]))
    broker.send(Message("T", b"behind", properties=half), 0, PREPARED)
    clock.now += 60_000
    broker.transaction_checks.check()
    assert bodies(broker, TRANS_HALF_TOPIC)[3:] == [b"behind"]
    assert bodies(broker, TRANS_CHECK_MAX_TIME_TOPIC) == []
    error = f"half message {message.msg_id} of p stays in {TRANS_HALF_TOPIC}, and is not checked"
    assert error in caplog.text
