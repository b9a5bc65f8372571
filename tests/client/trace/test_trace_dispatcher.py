"""Collecting traces, sending them, and finding them again."""

from __future__ import annotations

import threading

import pytest

from broker.api.pull import PullRequest
from broker.api.send import SendOptions, SendStatus
from client.hooks import CONSUME_CONTEXT_TYPE, ConsumeMessageContext
from client.producer.config import ProducerConfig
from client.producer.producer import Producer
from client.producer.tracing import trace_dispatcher
from client.trace.dispatcher import QUEUE_SIZE
from client.trace.trace import TraceBean, TraceContext, TraceType, decode_traces, query_traces
from client.trace.trace_hooks import ConsumeMessageTraceHook
from storage.configs.topics import TopicConfig
from storage.format.message import TRACE_TOPIC, Message, MessageQueue
from tests.support.consumers import eventually
from tests.support.failing_broker import STATUS, FailingBroker

TRACED = ProducerConfig(enable_msg_trace=True)


def trace_messages(broker, topic=TRACE_TOPIC):
    config = broker.topic(topic)
    count = config.read_queue_nums if config else 0
    return [
        message
        for queue_id in range(count)
        for message in broker.pull(PullRequest("reader", topic, queue_id, 0)).messages
    ]


@pytest.fixture
def traced(manager, broker):
    with Producer("group", brokers=[broker], config=TRACED, manager=manager) as producer:
        yield producer


@pytest.fixture
def dispatcher(manager, broker):
    with Producer("host", brokers=[broker], manager=manager) as producer:
        made = trace_dispatcher(producer.instance, "group", "CONSUME")
        yield made
        made.shutdown()


def context(number, keys="k"):
    bean = TraceBean(msg_id=f"id{number}", topic="T", keys=keys)
    return TraceContext(trace_type=TraceType.Pub, beans=[bean], timestamp=number)


@pytest.mark.conformance("E9")
def test_a_send_is_traced_and_found_by_id_and_key(traced, broker, clock):
    sent = traced.send(Message("T", b"x" * 12, tags="TagA", keys="order-7"))
    traced.shutdown()
    [view] = query_traces([broker], sent.msg_id)
    assert view.trace_type is TraceType.Pub
    assert (view.group_name, view.topic, view.tags, view.keys) == ("group", "T", "TagA", "order-7")
    assert (view.store_host, view.offset_msg_id) == ("127.0.0.1:10911", sent.offset_msg_id)
    assert (view.timestamp, view.cost_ms, view.success) == (clock.now_ms(), 0, True)
    [message] = broker.query_message(TRACE_TOPIC, "order-7").messages
    assert message.keys == tuple(sorted([sent.msg_id, "order-7"]))
    [record] = decode_traces(message.body.decode())
    assert record.beans[0].body_length == 12
    assert query_traces([broker], "unknown") == []


@pytest.mark.parametrize("kind", ["PRODUCE", "CONSUME"])
def test_a_group_with_the_longest_name_is_traced(manager, broker, kind):
    group = "g" * 255
    with Producer(group, brokers=[broker], config=TRACED, manager=manager) as producer:
        sent = producer.send(Message("T", b"x"))
        names = {trace_dispatcher(producer.instance, group, kind)._producer.group for _ in range(2)}
    [view] = query_traces([broker], sent.msg_id)
    assert view.group_name == group
    assert [len(name) for name in names] == [255, 255], "and each has its own"


def test_nothing_is_traced_by_default(manager, broker):
    with Producer("group", brokers=[broker], manager=manager) as producer:
        producer.send(Message("T", b"x"))
    assert broker.topic(TRACE_TOPIC) is None


def test_what_was_not_answered_or_sent_one_way_is_not_traced(traced, manager, broker):
    traced.send_oneway(Message("T", b"x"))
    with pytest.raises(ValueError, match="body length is zero"):
        traced.send(Message("T", b""))
    traced.shutdown()
    assert trace_messages(broker) == []


def test_a_send_that_is_not_ok_is_traced_as_failed(manager, broker):
    broker.update_topic(TopicConfig("T", 1, 1))
    failing = FailingBroker(broker)
    with Producer("group", brokers=[failing], config=TRACED, manager=manager) as producer:
        failing.plan("send", STATUS(SendStatus.FLUSH_DISK_TIMEOUT))
        sent = producer.send(Message("T", b"x"))
    [view] = query_traces([broker], sent.msg_id)
    assert not view.success


def test_a_batch_and_asynchronous_sends_are_traced(traced, broker):
    batch = traced.send([Message("T", b"1", keys="k"), Message("T", b"2")])
    single = traced.send_async(Message("T", b"x")).result(20)
    traced.shutdown()
    for msg_id in (*batch.msg_id.split(","), single.msg_id):
        assert len(query_traces([broker], msg_id)) == 1


def test_traces_go_to_a_topic_of_ones_own(manager, broker):
    config = ProducerConfig(enable_msg_trace=True, customized_trace_topic="MyTraces")
    with Producer("group", brokers=[broker], config=config, manager=manager) as producer:
        sent = producer.send(Message("T", b"x"))
    assert query_traces([broker], sent.msg_id) == []
    assert len(query_traces([broker], sent.msg_id, "MyTraces")) == 1


def test_traces_wait_half_a_second_for_company(dispatcher, scheduler, broker):
    assert dispatcher.append(context(1))
    scheduler.advance(400)
    assert dispatcher.append(context(2))
    scheduler.advance(99)
    assert dispatcher.append(context(3))
    scheduler.advance(1)
    assert dispatcher.append(context(4))
    dispatcher.shutdown()
    ids = [
        [it.beans[0].msg_id for it in decode_traces(message.body.decode())]
        for message in trace_messages(broker)
    ]
    assert sorted(ids) == [["id1", "id2", "id3"], ["id4"]]


def test_nothing_runs_while_there_is_nothing_to_trace(dispatcher, scheduler):
    before = len(scheduler.pending_ms)
    dispatcher.append(context(1))
    assert len(scheduler.pending_ms) == before + 1
    scheduler.advance(500)
    assert len(scheduler.pending_ms) == before


def test_a_segment_is_sent_when_it_is_full(dispatcher, broker):
    for number in range(250):
        assert dispatcher.append(context(number, keys="k" * 1_000))
    dispatcher.flush()
    dispatcher.shutdown()
    messages = trace_messages(broker)
    records = [decode_traces(message.body.decode()) for message in messages]
    assert sorted(map(len, records)) == [24, 113, 113]
    largest = max(len(message.body) for message in messages)
    assert 118_000 <= largest < 119_100


def test_a_segment_is_sent_before_its_keys_are_too_many(dispatcher, broker):
    for number in range(QUEUE_SIZE):
        dispatcher.append(context(number, keys=f"key-{number:060}"))
    dispatcher.shutdown()
    messages = trace_messages(broker)
    assert sum(len(decode_traces(it.body.decode())) for it in messages) == QUEUE_SIZE
    assert max(len(message.property_bytes) for message in messages) < 32_767


@pytest.mark.parametrize("count", [100, 1_000])
def test_every_message_of_batches_is_found(count, manager, broker):
    """Each id of a batch is a key: those of the tenth batch of 100 do not fit any more."""
    with Producer("group", brokers=[broker], config=TRACED, manager=manager) as producer:
        sent = [
            producer.send([Message("T", b"x") for _ in range(count)]) for _ in range(1_200 // count)
        ]
    traces = trace_messages(broker)
    assert max(len(message.property_bytes) for message in traces) < 32_767
    for result in sent:
        ids = result.msg_id.split(",")
        assert len(ids) == count
        for number in (0, count // 2, count - 1):
            [view] = query_traces([broker], ids[number])
            wanted = result.offset_msg_id.split(",")[number]
            assert wanted in view.offset_msg_id.split(",")


def test_a_call_of_many_messages_is_divided(dispatcher, broker):
    beans = [TraceBean(msg_id=f"{number:032}", topic="T", keys="k" * 90) for number in range(1_024)]
    for kind in (TraceType.SubBefore, TraceType.SubAfter):
        dispatcher.append(TraceContext(trace_type=kind, beans=beans, request_id="r"))
    dispatcher.shutdown()
    messages = trace_messages(broker)
    found = [one for message in messages for one in decode_traces(message.body.decode())]
    assert len(found) == 2 * 1_024
    assert max(len(message.body) for message in messages) <= 128_000


def test_what_is_left_after_a_full_segment_waits_half_a_second_too(dispatcher, scheduler, broker):
    before = len(scheduler.pending_ms)
    beans = [TraceBean(msg_id=f"{number:032}", topic="T") for number in range(1_000)]
    dispatcher.append(TraceContext(trace_type=TraceType.Pub, beans=beans))
    scheduler.advance(100)
    assert len(scheduler.pending_ms) == before + 1
    scheduler.advance(499)
    assert len(scheduler.pending_ms) == before + 1
    scheduler.advance(100)
    assert len(scheduler.pending_ms) == before
    eventually(lambda: len(trace_messages(broker)) > 1)
    found = [decode_traces(message.body.decode()) for message in trace_messages(broker)]
    assert sum(len(one.beans) for records in found for one in records) == 1_000


def test_keys_are_counted_in_bytes(dispatcher, broker):
    for number in range(600):
        dispatcher.append(context(number, keys=f"\u8ba2\u5355{number:03}" * 8))
    dispatcher.shutdown()
    messages = trace_messages(broker)
    assert sum(len(decode_traces(it.body.decode())) for it in messages) == 600


def test_a_message_with_too_many_keys_takes_no_other_trace_with_it(dispatcher, broker, caplog):
    dispatcher.append(context(1))
    dispatcher.append(context(2, keys=" ".join(f"{number:05}" for number in range(6_000))))
    dispatcher.append(context(3, keys="\ud800"))
    dispatcher.shutdown()
    found = [decode_traces(message.body.decode()) for message in trace_messages(broker)]
    assert sorted(one.timestamp for records in found for one in records) == [1, 3]
    assert caplog.text.count("a trace could not be sent") == 1


def test_what_does_not_fit_into_the_queue_is_dropped_and_counted(dispatcher):
    taken = [dispatcher.append(context(number)) for number in range(QUEUE_SIZE + 3)]
    assert taken == [True] * QUEUE_SIZE + [False] * 3
    assert dispatcher.discarded == 3


def test_a_queue_that_fills_is_emptied_without_waiting(dispatcher, scheduler):
    for number in range(QUEUE_SIZE // 2):
        dispatcher.append(context(number))
    scheduler.advance(0)
    assert all(dispatcher.append(context(number)) for number in range(QUEUE_SIZE))
    assert dispatcher.discarded == 0


@pytest.mark.conformance("E9")
def test_a_listeners_call_is_traced_before_and_after(manager, broker, clock):
    broker.send(Message("T", b"1", keys="k1"), 0)
    broker.send(Message("T", b"2", properties={"TRACE_ON": "false"}), 0)
    messages = broker.pull(PullRequest("reader", "T", 0, 0)).messages
    call = ConsumeMessageContext(
        consumer_group="consumers",
        messages=messages,
        message_queue=MessageQueue("T", "broker-a", 0),
    )
    with Producer("host", brokers=[broker], manager=manager) as host:
        dispatcher = trace_dispatcher(host.instance, "consumers", "CONSUME", "Traces")
        hook = ConsumeMessageTraceHook.of(host.instance, dispatcher)
        hook.consume_message_before(call)
        clock.advance(30)
        call.success, call.props[CONSUME_CONTEXT_TYPE] = False, "TIME_OUT"
        hook.consume_message_after(call)
        hook.shutdown()
    before, after = query_traces([broker], messages[0].msg_id, "Traces")
    assert (before.trace_type, after.trace_type) == (TraceType.SubBefore, TraceType.SubAfter)
    assert before.request_id == after.request_id != ""
    assert (after.cost_ms, after.success, after.context_code) == (15, False, 1)
    assert (after.group_name, after.timestamp) == ("consumers", clock.now_ms())
    assert query_traces([broker], messages[1].msg_id, "Traces") == []


def test_a_call_without_traced_messages_leaves_no_trace(dispatcher, broker, clock):
    broker.send(Message("T", b"2", properties={"TRACE_ON": "false"}), 0)
    hook = ConsumeMessageTraceHook(dispatcher, clock, lambda: "request")
    call = ConsumeMessageContext(
        consumer_group="consumers",
        messages=broker.pull(PullRequest("reader", "T", 0, 0)).messages,
        message_queue=MessageQueue("T", "broker-a", 0),
    )
    hook.consume_message_before(call)
    hook.consume_message_after(call)
    dispatcher.shutdown()
    assert trace_messages(broker) == []


def test_traces_of_many_threads_all_arrive(dispatcher, broker):
    def append(first):
        for number in range(first, first + 100):
            assert dispatcher.append(context(number))

    threads = [threading.Thread(target=append, args=(first,)) for first in range(0, 800, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    dispatcher.shutdown()
    ids = {
        record.beans[0].msg_id
        for message in trace_messages(broker)
        for record in decode_traces(message.body.decode())
    }
    assert ids == {f"id{number}" for number in range(800)}


def test_a_trace_message_that_cannot_be_unpacked_hides_no_other(traced, broker, caplog):
    sent = traced.send(Message("T", b"x"))
    traced.shutdown()
    damaged = Message(TRACE_TOPIC, b"no zlib", keys=sent.msg_id)
    broker.send(damaged, 0, SendOptions(sys_flag=1))
    [view] = query_traces([broker], sent.msg_id)
    assert view.trace_type is TraceType.Pub
    assert "a trace message cannot be read: message" in caplog.text
    assert "the compressed body is damaged" in caplog.text
