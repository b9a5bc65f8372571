"""Sending: where to, how often, for how long."""

from __future__ import annotations

import zlib

import pytest

from broker.api.pull import PullRequest
from broker.api.send import SendStatus
from broker.errors import (
    BrokerBusyError,
    BrokerSystemError,
    InvalidNameError,
    MessageIllegalError,
    NoPermissionError,
    ResponseCode,
    ServiceNotAvailableError,
    TopicNotExistError,
    error_of,
)
from client.errors import (
    BrokerNotExistError,
    ClientError,
    ClientErrorCode,
    RouteNotFoundError,
    SendFailedError,
    SendTimeoutError,
)
from client.producer.config import RETRY_RESPONSE_CODES, ProducerConfig
from client.producer.producer import Producer
from client.producer.selector import select_by_hash
from storage.configs.topics import TopicConfig
from storage.format.message import (
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_RECONSUME_TIME,
    Message,
    MessageQueue,
)
from storage.format.sys_flag import MessageSysFlag
from tests.support.failing_broker import DOWN, LATE, LOST, SILENT, STATUS

BUSY = BrokerBusyError("[TIMEOUT_CLEAN_QUEUE] broker busy")
DISK_FULL = ServiceNotAvailableError("the disk is full")


def stored(broker, topic):
    """All messages of a topic, in log order."""
    config = broker.topic(topic)
    found = []
    for queue_id in range(config.read_queue_nums if config else 0):
        found += broker.pull(PullRequest("reader", topic, queue_id, 0)).messages
    return sorted(found, key=lambda message: message.commitlog_offset)


@pytest.fixture
def produce(manager, a, b):
    """Make running producers over two brokers with topic T; all are shut down after the test."""
    started = []
    for broker in (a, b):
        broker.update_topic(TopicConfig("T", 2, 2))

    def producer(brokers=(a, b), group="group", **settings):
        config = ProducerConfig(**settings)
        started.append(Producer(group, brokers=brokers, config=config, manager=manager))
        started[-1].start()
        return started[-1]

    yield producer
    for it in started:
        it.shutdown()


@pytest.mark.conformance("A3")
def test_messages_go_to_the_queues_of_all_brokers_in_turn(produce):
    producer = produce()
    queues = [producer.send(Message("T", b"x")).message_queue for _ in range(8)]
    assert queues[:4] == queues[4:]
    assert sorted(queues[:4]) == producer.fetch_publish_message_queues("T")


def test_messages_of_one_moment_do_not_share_what_only_some_of_them_have(produce, a, clock):
    producer = produce(brokers=(a,))
    retried = {PROPERTY_RECONSUME_TIME: "2", PROPERTY_MAX_RECONSUME_TIMES: "5"}
    a.update_topic(TopicConfig("%RETRY%g", 1, 1))
    born = clock.now_ms()
    packed_body = b"x" * 5_000
    for _ in range(2):
        producer.send(Message("T", b"plain"))
        producer.send(Message("T", packed_body))
        producer.send(Message("%RETRY%g", b"again", properties=retried))
        producer.send(Message("T", b"plain", flag=7), timeout_ms=9_000)
        clock.advance(1)
    found = [(m.body, m.sys_flag, m.flag, m.born_timestamp - born) for m in stored(a, "T")]
    packed = MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
    assert found == [
        each
        for later in (0, 1)
        for each in (
            (b"plain", 0, 0, later),
            (packed_body, packed, 0, later),
            (b"plain", 0, 7, later),
        )
    ]
    assert {m.reconsume_times for m in stored(a, "T")} == {0}
    assert [m.reconsume_times for m in stored(a, "%RETRY%g")] == [2, 2]


@pytest.mark.conformance("A3")
def test_a_message_that_a_broker_does_not_take_goes_to_another_one(produce, a, b):
    producer = produce()
    a.always("send", DOWN)
    results = [producer.send(Message("T", b"%d" % i)) for i in range(8)]
    assert {result.message_queue.broker_name for result in results} == {"broker-b"}
    assert [message.body for message in stored(b, "T")] == [b"%d" % i for i in range(8)]
    assert a.called("send") >= 2


@pytest.mark.conformance("A3")
def test_with_the_latency_table_a_failing_broker_is_not_even_asked_again(produce, a, clock):
    producer = produce(send_latency_fault_enable=True)
    a.always("send", DOWN)
    for _ in range(12):
        producer.send(Message("T", b"x"))
    assert a.called("send") == 1
    a.heal()
    clock.advance(600_000)
    sent = [producer.send(Message("T", b"x")).message_queue.broker_name for _ in range(4)]
    assert set(sent) == {"broker-a", "broker-b"}


@pytest.mark.conformance("A3")
def test_with_the_latency_table_a_slow_broker_is_left_alone(produce, a, b, clock):
    producer = produce(send_latency_fault_enable=True)
    for broker in (a, b):
        broker.plan("send", LATE(600))
    names = [producer.send(Message("T", b"x")).message_queue.broker_name for _ in range(2)]
    assert sorted(names) == ["broker-a", "broker-b"]
    clock.advance(30_000 - 1_200)
    # The first one that was slow is not back yet, the second one neither; then one after the other.
    clock.advance(600)
    first = {producer.send(Message("T", b"x")).message_queue.broker_name for _ in range(6)}
    assert first == {names[0]}
    clock.advance(600)
    assert len({producer.send(Message("T", b"x")).message_queue for _ in range(8)}) == 4


@pytest.mark.conformance("A3")
def test_a_send_is_tried_three_times_and_the_error_tells_of_all(produce, a, b, clock):
    producer = produce()
    for broker in (a, b):
        broker.always("send", DOWN)
    message = Message("T", b"x")
    with pytest.raises(SendFailedError) as caught:
        producer.send(message)
    error = caught.value
    assert len(error.brokers_sent) == a.called("send") + b.called("send") == 3
    assert error.brokers_sent[0] == error.brokers_sent[2] != error.brokers_sent[1]
    assert error.code == ClientErrorCode.CONNECT_BROKER_EXCEPTION
    assert error.__cause__ is DOWN
    assert str(error).startswith("sending to topic T failed after 3 attempts in 0 ms, at broker-")
    assert stored(a, "T") == stored(b, "T") == []


@pytest.mark.parametrize("code", sorted(RETRY_RESPONSE_CODES))
def test_answers_that_are_tried_again(produce, a, b, code):
    refusal = error_of(code, "refused")
    producer = produce(brokers=[a])
    a.plan("send", refusal, refusal)
    assert producer.send(Message("T", b"x")).send_status is SendStatus.SEND_OK
    assert a.called("send") == 3
    a.plan("send", refusal, refusal, refusal)
    with pytest.raises(SendFailedError) as caught:
        producer.send(Message("T", b"x"))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "refusal", [BUSY, MessageIllegalError("too long"), error_of(ResponseCode.FLOW_CONTROL, "slow")]
)
def test_answers_that_are_not_tried_again(produce, a, refusal):
    producer = produce(brokers=[a])
    a.plan("send", refusal)
    with pytest.raises(type(refusal)) as caught:
        producer.send(Message("T", b"x"))
    assert caught.value is refusal
    assert a.called("send") == 1


def test_retries_share_one_time_out_and_get_what_is_left_of_it(produce, a, b, clock):
    producer = produce(send_msg_timeout_ms=3_000)
    for broker in (a, b):
        broker.always("send", SILENT(1_300))
    begin = clock.now_ms()
    with pytest.raises(SendFailedError) as caught:
        producer.send(Message("T", b"x"))
    given = [options.timeout_ms for _, (_, _, options) in a.calls + b.calls]
    assert sorted(given, reverse=True) == [3_000, 1_700, 400]
    assert caught.value.cost_ms == clock.now_ms() - begin == 3_900
    assert caught.value.code == ClientErrorCode.ACCESS_BROKER_TIMEOUT


def test_no_attempt_is_begun_after_the_time_out(produce, a, b, clock):
    producer = produce()
    for broker in (a, b):
        broker.always("send", SILENT(701))
    with pytest.raises(SendTimeoutError, match="took 701 ms of 700 ms allowed") as caught:
        producer.send(Message("T", b"x"), timeout_ms=700)
    assert isinstance(caught.value, TimeoutError)
    assert len(caught.value.brokers_sent) == a.called("send") + b.called("send") == 1


def test_asking_for_the_route_counts_too(produce, a, b):
    producer = produce()
    for broker in (a, b):
        broker.plan("topic", LATE(600))
    with pytest.raises(SendTimeoutError, match="before any try") as caught:
        producer.send(Message("Slow", b"x"), timeout_ms=1_000)
    assert caught.value.brokers_sent == ()


def test_an_answer_that_comes_late_counts_all_the_same(produce, a, b, clock):
    producer = produce(send_msg_timeout_ms=1_000)
    for broker in (a, b):
        broker.plan("send", LATE(9_000))
    result = producer.send(Message("T", b"x"))
    assert result.send_status is SendStatus.SEND_OK
    assert len(stored(a, "T") + stored(b, "T")) == 1


def test_a_lost_answer_leads_to_a_second_message_with_the_same_id(produce, a, b):
    producer = produce()
    for broker in (a, b):
        broker.plan("send", LOST)
    message = Message("T", b"x")
    result = producer.send(message)
    found = stored(a, "T") + stored(b, "T")
    assert [it.msg_id for it in found] == [result.msg_id] * 3
    assert message.properties["UNIQ_KEY"] == result.msg_id


def test_what_is_stored_but_not_ok_is_the_result(produce, a):
    producer = produce(brokers=[a])
    a.plan("send", STATUS(SendStatus.FLUSH_DISK_TIMEOUT))
    assert producer.send(Message("T", b"x")).send_status is SendStatus.FLUSH_DISK_TIMEOUT
    assert len(stored(a, "T")) == 1


def test_what_is_stored_but_not_ok_is_sent_to_another_broker_where_that_is_wanted(produce, a, b):
    producer = produce(retry_another_broker_when_not_store_ok=True)
    a.always("send", STATUS(SendStatus.SLAVE_NOT_AVAILABLE))
    for _ in range(4):
        result = producer.send(Message("T", b"x"))
        assert (result.send_status, result.message_queue.broker_name) == ("SEND_OK", "broker-b")


@pytest.mark.parametrize("then", [[DOWN, DOWN], [BUSY], [DISK_FULL, BUSY]])
def test_a_message_that_is_stored_is_no_failure_whatever_comes_after(produce, a, then):
    producer = produce(brokers=[a], retry_another_broker_when_not_store_ok=True)
    a.plan("send", STATUS(SendStatus.FLUSH_DISK_TIMEOUT), *then)
    assert producer.send(Message("T", b"x")).send_status is SendStatus.FLUSH_DISK_TIMEOUT
    assert a.called("send") == 1 + len(then)


@pytest.mark.conformance("F2")
def test_a_selector_gets_all_queues_the_message_and_the_argument_and_one_try(produce, a, b):
    producer = produce()
    seen = []

    def select(queues, message, arg):
        seen.append((len(queues), message.topic, arg))
        return queues[-1]

    result = producer.send(Message("T", b"x"), selector=select, arg=7)
    assert result.message_queue == MessageQueue("T", "broker-b", 1)
    assert seen == [(4, "T", 7)]
    b.plan("send", DOWN)
    with pytest.raises(type(DOWN)):
        producer.send(Message("T", b"x"), selector=select, arg=7)
    assert b.called("send") == 1
    b.plan("send", DISK_FULL)
    with pytest.raises(ServiceNotAvailableError):
        producer.send(Message("T", b"x"), selector=select, arg=7)
    assert b.called("send") == 2
    with pytest.raises(ClientError, match="the selector chose no queue of topic T"):
        producer.send(Message("T", b"x"), selector=lambda *_: None)


@pytest.mark.conformance("F2", "F1")
def test_messages_of_one_order_stay_in_order_in_one_queue(produce, b):
    producer = produce()
    for step in ("A1", "B1", "A2", "A3", "B2", "B3"):
        producer.send(Message("T", step.encode()), selector=select_by_hash, arg=step[0])
    in_queues = {}
    for queue in producer.fetch_publish_message_queues("T"):
        pulled = producer.instance.routes.broker(queue.broker_name).pull(
            PullRequest("reader", "T", queue.queue_id, 0)
        )
        in_queues[queue] = [message.body.decode() for message in pulled.messages]
    orders = [
        [step for step in steps if step[0] == order]
        for order in "AB"
        for steps in in_queues.values()
    ]
    assert sorted(filter(None, orders)) == [["A1", "A2", "A3"], ["B1", "B2", "B3"]]


def test_an_explicit_queue_is_tried_once_and_must_fit_the_topic(produce, a, b):
    producer = produce()
    queue = MessageQueue("T", "broker-a", 1)
    assert producer.send(Message("T", b"x"), queue=queue).message_queue == queue
    a.plan("send", DISK_FULL)
    with pytest.raises(ServiceNotAvailableError):
        producer.send(Message("T", b"x"), queue=queue)
    assert a.called("send") == 1
    with pytest.raises(ClientError, match="the message's topic is T, the queue's is Other"):
        producer.send(Message("T", b"x"), queue=queue._replace(topic="Other"))
    with pytest.raises(BrokerNotExistError):
        producer.send(Message("T", b"x"), queue=queue._replace(broker_name="broker-z"))
    with pytest.raises(BrokerSystemError, match="has no queue 9"):
        producer.send(Message("T", b"x"), queue=queue._replace(queue_id=9))
    with pytest.raises(ValueError, match="not both"):
        producer.send(Message("T", b"x"), queue=queue, selector=select_by_hash, arg=1)
    with pytest.raises(ValueError, match="arg is for a selector"):
        producer.send(Message("T", b"x"), queue=queue, arg=1)


def test_a_one_way_message_is_sent_once_and_its_refusal_is_not_told(produce, a, b):
    producer = produce()
    assert producer.send_oneway(Message("T", b"x")) is None
    assert len(stored(a, "T") + stored(b, "T")) == 1
    for broker in (a, b):
        broker.always("send", BUSY)
    producer.send_oneway(Message("T", b"x"))
    producer.send_oneway(Message("T", b"x"), queue=MessageQueue("T", "broker-a", 0))
    assert a.called("send") + b.called("send") == 2
    for broker in (a, b):
        broker.always("send", DOWN)
    with pytest.raises(SendFailedError, match="sending to topic T failed after 1 attempt in"):
        producer.send_oneway(Message("T", b"x"))


@pytest.mark.conformance("A6")
def test_the_first_message_creates_its_topic_like_tbw102(produce, a, b):
    producer = produce()
    result = producer.send(Message("New", b"x"))
    broker = {"broker-a": a, "broker-b": b}[result.message_queue.broker_name]
    config = broker.topic("New")
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (4, 4, 6)
    assert len([it for it in (a, b) if it.topic("New")]) == 1
    narrow = produce(group="narrow", default_topic_queue_nums=1)
    sent = narrow.send(Message("Narrow", b"x")).message_queue
    assert sent.queue_id == 0


@pytest.mark.conformance("A6")
def test_where_topics_are_not_created_there_is_no_route(produce, open_broker):
    strict = open_broker("broker-c", auto_create_topic_enable=False)
    producer = produce(brokers=[strict])
    with pytest.raises(
        RouteNotFoundError, match="no broker has topic New, or none lets it be written; create it"
    ) as caught:
        producer.send(Message("New", b"x"))
    assert caught.value.code == ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION
    with pytest.raises(RouteNotFoundError):
        producer.send(Message("New", b"x"), selector=select_by_hash, arg="a")
    with pytest.raises(TopicNotExistError):
        producer.send(Message("New", b"x"), queue=MessageQueue("New", "broker-c", 0))


@pytest.mark.feature(8)
def test_bodies_from_4096_bytes_on_are_stored_packed_and_the_callers_stay(produce, a):
    producer = produce(brokers=[a])
    small, large = b"a" * 4095, b"a" * 4096
    for body in (small, large):
        message = Message("T", body, keys="k")
        producer.send(message)
        assert message.body == body
    plain, packed = stored(a, "T")
    assert (plain.sys_flag, plain.stored_body) == (0, small)
    assert (packed.sys_flag, packed.body) == (0x301, large)
    assert packed.stored_body == zlib.compress(large, 5)
    assert packed.keys == ("k",)


def test_a_delay_level_goes_into_the_message(produce, a):
    producer = produce(brokers=[a])
    producer.send(Message("T", b"x", delay_time_level=3))
    assert stored(a, "T") == []
    [waiting] = a.pull(PullRequest("reader", "SCHEDULE_TOPIC_XXXX", 2, 0)).messages
    assert waiting.get_property("REAL_TOPIC") == "T"


@pytest.mark.parametrize(
    ("message", "error", "words"),
    [
        (Message("bad name", b"x"), InvalidNameError, "has characters other than"),
        (Message("", b"x"), InvalidNameError, "has no name"),
        (Message("t" * 128, b"x"), InvalidNameError, "allowed are 127"),
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), NoPermissionError, "filled by the broker"),
        (Message("T", b""), MessageIllegalError, "body length is zero"),
        (Message("T", b"x" * 101), MessageIllegalError, "allowed are 100"),
    ],
)
def test_what_may_not_be_sent_is_refused_before_any_broker_is_asked(
    produce, a, message, error, words
):
    producer = produce(brokers=[a], max_message_size=100)
    a.always("send", DOWN)
    with pytest.raises(error, match=words):
        producer.send(message)
    assert a.called("send") == 0


def test_ids_are_those_of_this_process_and_differ(produce, a, clock):
    producer = produce()
    ids = {producer.send(Message("T", b"x")).msg_id for _ in range(100)}
    assert len(ids) == 100
    assert {len(it) for it in ids} == {32}
    message = Message("T", b"x")
    assert producer.send(message).msg_id == producer.send(message).msg_id


def test_a_retry_message_says_its_attempts_beside_its_properties_and_in_them(produce, a):
    retry = "%RETRY%group"
    a.update_topic(TopicConfig(retry, 1, 1))
    producer = produce(brokers=[a])
    properties = {PROPERTY_RECONSUME_TIME: "4", PROPERTY_MAX_RECONSUME_TIMES: "16", "k": "v"}
    a.always("send", LATE(0))
    producer.send(Message(retry, b"x", properties=properties))
    [(_, (message, _, options))] = a.calls
    assert (options.reconsume_times, options.max_reconsume_times) == (4, 16)
    assert properties.items() <= message.properties.items(), "as the golden retry-dlq stores say"
