"""Batches: what may be one, how large, and how they lie in the store."""

from __future__ import annotations

import pytest

from broker.api.pull import PullRequest
from broker.errors import MessageIllegalError
from broker.validation import MAX_MESSAGE_SIZE
from client.producer.batch import encoded_size, split_batch
from client.producer.config import ProducerConfig
from client.producer.producer import Producer
from storage.configs.topics import TopicConfig
from storage.format.message import Message, MessageQueue
from tests.support.failing_broker import LOST, FailingBroker


@pytest.fixture
def failing(broker, clock):
    broker.update_topic(TopicConfig("T", 1, 1))
    return FailingBroker(broker, clock)


@pytest.fixture
def producer(failing, manager):
    with Producer("group", brokers=[failing], manager=manager) as running:
        yield running


def stored(broker):
    return broker.pull(PullRequest("reader", "T", 0, 0)).messages


def test_messages_of_a_batch_lie_one_behind_the_other_with_one_store_time(producer, failing):
    bodies = [b"a" * 5000, b"b", b"c"]
    result = producer.send([Message("T", body, keys=body[:1].decode()) for body in bodies])
    found = stored(failing)
    assert [message.body for message in found] == bodies
    assert [message.queue_offset for message in found] == [0, 1, 2]
    assert len({message.store_timestamp for message in found}) == 1
    assert {message.sys_flag for message in found} == {0}, "batches are never packed"
    assert result.msg_id == ",".join(message.msg_id for message in found)
    assert result.offset_msg_id == ",".join(message.offset_msg_id for message in found)
    assert result.queue_offset == 0


def test_a_batch_that_is_tried_again_keeps_the_ids_of_its_messages(producer, failing):
    failing.plan("send_batch", LOST)
    producer.send([Message("T", b"1"), Message("T", b"2")])
    first, second, third, fourth = (message.msg_id for message in stored(failing))
    assert (first, second) == (third, fourth)
    assert first != second


def test_a_batch_goes_to_a_chosen_queue_and_in_other_threads_too(producer, failing):
    batch = [Message("T", b"1"), Message("T", b"2")]
    assert producer.send(batch, queue=MessageQueue("T", "broker-a", 0)).queue_offset == 0
    assert producer.send_async(batch).result(20).queue_offset == 2


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ([], "has no message"),
        ([Message("T", b"1"), Message("U", b"2")], "one topic, not T and U"),
        ([Message("T", b"1"), Message("T", b"2", delay_time_level=1)], "cannot be delayed"),
        ([Message("%RETRY%g", b"1")], "takes no batch"),
        ([Message("T", b"1"), Message("T", b"2", properties={"WAIT": "false"})], "or none does"),
        ([Message("T", b"1"), Message("T", b"")], "body length is zero"),
    ],
)
def test_what_can_not_be_one_batch(producer, failing, batch, words):
    with pytest.raises(MessageIllegalError, match=words):
        producer.send(batch)
    assert stored(failing) == []


def test_a_batch_above_the_limit_is_refused_and_split_ones_are_taken(manager, failing):
    config = ProducerConfig(max_message_size=2_000)
    with Producer("small", brokers=[failing], config=config, manager=manager) as producer:
        many = [Message("T", b"%03d" % i * 50, keys=f"k{i}") for i in range(40)]
        with pytest.raises(MessageIllegalError, match="cut it with split_batch"):
            producer.send(many)
        batches = list(split_batch(many, 2_000))
        assert [message for batch in batches for message in batch] == many
        assert len(batches) > 4
        for batch in batches:
            producer.send(batch)
            assert encoded_size(batch) <= 2_000
    assert [message.body for message in stored(failing)] == [message.body for message in many][:32]


def test_a_batch_is_cut_before_the_message_that_would_be_too_much(producer, failing):
    # Each takes 22 bytes of head, its body, its properties, and 256 bytes of room.
    one = Message("T", b"x" * (500 - 22 - 256))
    assert [len(batch) for batch in split_batch([one] * 5, 1_000)] == [2, 2, 1]
    assert [len(batch) for batch in split_batch([one] * 5, 999)] == [1] * 5
    assert [len(batch) for batch in split_batch([one] * 2, 10)] == [1, 1]
    assert list(split_batch([])) == []


def test_the_largest_batches_that_split_makes_are_taken_by_the_broker(producer, failing):
    many = [Message("T", b"x" * 1_000) for _ in range(9_000)]
    batches = list(split_batch(many))
    assert all(encoded_size(batch) <= MAX_MESSAGE_SIZE for batch in batches)
    for batch in batches:
        producer.send(batch)
    assert failing.max_offset("T", 0) == 9_000


def test_a_batch_of_long_characters_is_measured_exactly_before_it_is_refused(failing, manager):
    # Four bytes a character is what could be; what is counts.
    config = ProducerConfig(max_message_size=2_000)
    with Producer("exact", brokers=[failing], config=config, manager=manager) as producer:
        one = Message("T", b"x" * 100, keys="k" * 800)
        producer.send([one, Message("T", b"y", keys="k" * 800)])
        with pytest.raises(MessageIllegalError, match="cut it with split_batch"):
            producer.send([one, Message("T", b"y", keys="\N{EURO SIGN}" * 800)])
    assert [message.body for message in stored(failing)] == [b"x" * 100, b"y"]


def test_the_messages_of_a_batch_get_ids_of_their_own_and_keep_what_they_have(producer, failing):
    known = Message("T", b"1", properties={"UNIQ_KEY": "7F000001000A18B4AAC20000000003E8"})
    others = [Message("T", b"2"), Message("T", b"3")]
    result = producer.send([others[0], known, others[1]])
    ids = [message.properties["UNIQ_KEY"] for message in (others[0], known, others[1])]
    assert result.msg_id == ",".join(ids)
    assert ids[1] == "7F000001000A18B4AAC20000000003E8"
    assert len(set(ids)) == 3
    assert [message.msg_id for message in stored(failing)] == ids
