"""What is stored of what is sent."""

from __future__ import annotations

import shutil
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from broker.api.broker import Broker
from broker.api.pull import PullRequest
from broker.api.send import DEFAULT_SEND, SendOptions, SendStatus
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.errors import BrokerError, MessageIllegalError, NoPermissionError, ResponseCode
from broker.send.column import Column, prepared_column
from broker.send.compression import compress_body
from broker.send.message_builder import MessageBuilder, Origin
from broker.send.send import Sender
from storage import native
from storage.config import SMALL_STORE, FlushDiskType
from storage.configs.topics import TopicConfig
from storage.format.delay import parse_delay_levels
from storage.format.encode import MessageInner, prepare
from storage.format.message import Message, MessageExt, MessageSysFlag
from storage.format.message_id import UniqueIds
from storage.results import PutMessageResult, PutMessageStatus
from storage.store import MessageStore
from tests.support.examples import examples


def stored(broker: Broker, topic: str, queue_id: int = 0, offset: int = 0) -> list[MessageExt]:
    return broker.pull(PullRequest("TOOLS_CONSUMER", topic, queue_id, offset)).messages


def test_a_plain_send_adds_id_and_cluster_and_drops_wait(broker):
    message = Message("T", b"body", tags="A", keys=["k1", "k2"], flag=7)
    message.properties |= {"WAIT": "true", "user": "v"}
    result = broker.send(message, 2)
    [found] = stored(broker, "T", 2)
    assert found.properties == {
        "TAGS": "A",
        "KEYS": "k1 k2",
        "user": "v",
        "UNIQ_KEY": result.msg_id,
        "CLUSTER": "DefaultCluster",
    }
    assert (found.body, found.flag, found.sys_flag, found.reconsume_times) == (b"body", 7, 0, 0)
    assert result.send_status is SendStatus.SEND_OK
    assert result.message_queue == ("T", "broker-a", 2)
    assert result.queue_offset == found.queue_offset == 0
    assert result.offset_msg_id == found.offset_msg_id
    assert result.store_timestamp == found.store_timestamp
    assert message.properties["WAIT"] == "true"  # the caller's message stays as it is
    assert "UNIQ_KEY" not in message.properties


def test_an_id_that_a_message_has_is_kept(broker):
    message = Message("T", b"x", properties={"UNIQ_KEY": "A" * 32})
    assert broker.send(message, 0).msg_id == "A" * 32
    [found] = broker.query_unique("T", "A" * 32)
    assert found.queue_offset == 0


def test_hosts_and_times_are_the_brokers_and_the_producers(open_broker):
    broker = open_broker(BrokerConfig(store_host="[2001:db8::1]:10911", born_host="10.0.0.9:5"))
    broker.send(Message("T", b"x"), 0)
    options = SendOptions(born_timestamp=1234, born_host="[::1]:9", reconsume_times=3)
    broker.send(Message("T", b"x"), 0, options)
    first, second = stored(broker, "T")
    assert (first.store_host, first.born_host) == ("[2001:db8::1]:10911", "10.0.0.9:5")
    assert first.born_timestamp <= first.store_timestamp
    assert (second.born_host, second.born_timestamp) == ("[::1]:9", 1234)
    assert second.reconsume_times == 3


def test_queues_are_taken_in_turn(broker):
    queues = [broker.send(Message("T", b"x")).message_queue.queue_id for _ in range(9)]
    assert sorted(queues[:4]) == [0, 1, 2, 3]
    assert queues[:4] == queues[4:8]
    columns = broker.send_column("T", [b"a"] * 3)
    assert list(columns.queue_ids) == queues[1:4]
    assert broker.send(Message("T", b"x")).message_queue.queue_id == queues[4]


def test_a_batch_goes_to_one_queue_with_consecutive_offsets(broker):
    broker.send(Message("T", b"before"), 1)
    messages = [Message("T", b"%d" % n, tags=f"t{n % 2}", keys=f"k{n}") for n in range(60)]
    result = broker.send_batch(messages, 1)
    assert (result.queue_offset, result.message_queue.queue_id) == (1, 1)
    found = stored(broker, "T", 1, 1)
    found += stored(broker, "T", 1, 33)
    assert [m.body for m in found] == [b"%d" % n for n in range(60)]
    assert [m.queue_offset for m in found] == list(range(1, 61))
    assert result.msg_id.split(",") == [m.msg_id for m in found]
    assert result.offset_msg_id.split(",") == [m.offset_msg_id for m in found]
    assert len({m.store_timestamp for m in found}) == 1
    assert found[0].properties == {
        "TAGS": "t0",
        "KEYS": "k0",
        "UNIQ_KEY": found[0].msg_id,
        "WAIT": "true",
        "CLUSTER": "DefaultCluster",
    }


def test_a_batch_lies_in_one_log_file(tmp_path):
    size = 4096
    config = SMALL_STORE.with_(mapped_file_size_commit_log=size)
    MessageStore.create(tmp_path / "s", config)
    with EmbeddedBroker.open(tmp_path / "s") as broker:
        broker.send(Message("T", bytes(1500)), 0)
        broker.send_batch([Message("T", bytes(900)) for _ in range(3)], 1)
        places = [m.commitlog_offset for m in stored(broker, "T", 1)]
        assert len(places) == 3
        assert places[0] == size
        with pytest.raises(MessageIllegalError):
            broker.send_batch([Message("T", bytes(900)) for _ in range(5)], 1)


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "no message"),
        ([Message("T", b"a"), Message("U", b"a")], "one topic, not T and U"),
        ([Message("T", b"a"), Message("T", b"a", delay_time_level=1)], "cannot be delayed"),
        ([Message("%RETRY%g", b"a")], "takes no batch"),
        ([Message("T", bytes(3 << 20)), Message("T", bytes(2 << 20))], "split it"),
    ],
)
def test_batches_that_break_a_rule_store_nothing(broker, messages, reason):
    with pytest.raises(MessageIllegalError, match=reason):
        broker.send_batch(messages)
    assert broker.wait_for_messages(None, 0) == 0


def test_a_delayed_message_waits_in_the_schedule_topic(broker):
    result = broker.send(Message("T", b"late", delay_time_level=3, tags="A"), 2)
    assert (result.message_queue.queue_id, result.message_queue.topic) == (2, "T")
    assert stored(broker, "T", 2) == []
    [found] = stored(broker, "SCHEDULE_TOPIC_XXXX", 2)
    assert found.properties == {
        "TAGS": "A",
        "DELAY": "3",
        "REAL_TOPIC": "T",
        "REAL_QID": "2",
        "WAIT": "true",
        "UNIQ_KEY": result.msg_id,
        "CLUSTER": "DefaultCluster",
    }
    unit = broker.view.unit("SCHEDULE_TOPIC_XXXX", 2, 0)
    assert unit[2] == found.store_timestamp + 10_000


def test_a_level_beyond_the_table_becomes_the_last_one(broker):
    broker.send(Message("T", b"late", delay_time_level=99), 0)
    [found] = stored(broker, "SCHEDULE_TOPIC_XXXX", 17)
    assert found.properties["DELAY"] == "18"


@pytest.mark.parametrize("level", ["0", "-2"])
def test_no_level_is_no_delay(broker, level):
    broker.send(Message("T", b"x", properties={"DELAY": level}), 0)
    assert len(stored(broker, "T")) == 1


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message("T", b"x", properties={"DELAY": "soon"}), "'soon' is no number"),
        (Message("T", bytes((4 << 20) + 1)), "allowed are 4194304"),
        (Message("T", b"x", properties={"n": "x" * 32767}), "allowed are 32767"),
        (Message("T", b"x", tags="a\x01b"), "U\\+0001"),
        (Message("T", b"x", tags="a\x02b"), "U\\+0002"),
        (Message("T", b"x", properties={"a\x01b": "c"}), "U\\+0001"),
        (Message("T", b"x", properties={"a": "b\x02c\x01d"}), "U\\+0002"),
        (Message("T", b"x", properties={"a": "\udc80"}), "no Unicode"),
    ],
)
def test_messages_that_break_a_limit_store_nothing(broker, message, reason):
    with pytest.raises(MessageIllegalError, match=reason) as caught:
        broker.send(message)
    assert caught.value.code is ResponseCode.MESSAGE_ILLEGAL
    with pytest.raises(MessageIllegalError):
        broker.send_batch([message])
    with pytest.raises(MessageIllegalError):
        broker.send_column("T", [message.body] * 50, properties=message.properties)
    assert broker.wait_for_messages(None, 0) == 0


def test_half_messages_are_refused_where_the_broker_takes_none(open_broker):
    message = Message("T", b"x", properties={"TRAN_MSG": "true", "PGROUP": "p"})
    with pytest.raises(NoPermissionError, match="transaction"):
        open_broker(BrokerConfig(reject_transaction_message=True)).send(message)


def test_half_messages_are_sent_one_by_one_and_never_delayed(broker):
    half = {"TRAN_MSG": "true", "PGROUP": "p"}
    with pytest.raises(MessageIllegalError, match="half messages"):
        broker.send_batch([Message("T", b"x", properties=half)])
    with pytest.raises(MessageIllegalError, match="half messages"):
        broker.send_column("T", [b"x"], properties=half)
    with pytest.raises(MessageIllegalError, match="delayed"):
        broker.send(Message("T", b"x", properties=half, delay_time_level=1))


def test_an_empty_body_is_the_clients_to_refuse(broker):
    broker.send(Message("T", b""), 0)
    assert stored(broker, "T")[0].body == b""


def test_compressed_bodies_come_back_as_they_were(broker):
    body = b"abc" * 2000
    packed, sys_flag = compress_body(body)
    assert zlib.decompress(packed) == body
    assert sys_flag == MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
    assert compress_body(body[:4095]) == (body[:4095], 0)
    broker.send(Message("T", packed), 0, DEFAULT_SEND._replace(sys_flag=sys_flag))
    [found] = stored(broker, "T")
    assert (found.sys_flag, found.body) == (0x301, body)
    assert len(found.stored_body) < 200


BODIES = st.lists(st.binary(max_size=40), min_size=1, max_size=70)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(BODIES, st.sampled_from([None, "A", "\u4e2d"]), st.sampled_from([0, 1, 2]), st.booleans())
def test_a_column_is_stored_as_single_sends_would_be(
    tmp_path_factory, bodies, tags, key_kind, delayed
):
    keys = None if key_kind == 0 else [f"k{n} \u00e9" if n % 3 else "" for n in range(len(bodies))]
    properties = {"p": "v", "TAGS": tags or ""}
    if delayed:
        properties["DELAY"] = "2"
    if key_kind == 2:
        keys = None
        properties["KEYS"] = "shared one"
    found = []
    ids: list[str] = []
    for column in (True, False):
        root = tmp_path_factory.mktemp("column")
        MessageStore.create(root, SMALL_STORE)
        with EmbeddedBroker.open(root, clock=lambda: 1_700_000_000_000) as broker:
            if column:
                result = broker.send_column("T", bodies, 1, properties=properties, keys=keys)
                assert list(result.queue_offsets) == list(range(len(bodies)))
                ids = [unique_id.decode() for unique_id in result.unique_ids]
            else:
                for n, body in enumerate(bodies):
                    message = Message("T", body, properties=properties)
                    message.properties["UNIQ_KEY"] = ids[n]
                    if keys is not None:
                        message.keys = keys[n]
                    broker.send(message, 1)
            view = broker.view
            where = ("SCHEDULE_TOPIC_XXXX", 1) if delayed else ("T", 1)
            rows: list[Any] = []
            for offset in range(view.max_offset_in_queue(*where)):
                [message] = view.get_message(*where, offset, 1).messages
                unit = view.unit(*where, offset)
                assert unit is not None
                rows.append((message.body, message.properties, message.sys_flag, unit[2]))
            rows.append(sorted(m.body for m in broker.query_message(where[0], "k1").messages))
            rows.append(len(broker.query_message(where[0], "shared").messages))
            found.append(rows)
        shutil.rmtree(root)  # of each example; pytest removes none before the end
    assert found[0] == found[1]


def test_columns_with_queues_of_their_own(broker):
    broker.update_topic(TopicConfig("T", 8, 8))
    queue_ids = [n % 3 for n in range(100)]
    result = broker.send_column("T", [b"%d" % n for n in range(100)], queue_ids)
    assert list(result.queue_offsets) == [n // 3 for n in range(100)]
    assert [m.body for m in stored(broker, "T", 1)] == [b"%d" % n for n in range(1, 97, 3)]
    assert stored(broker, "T", 0)[0].offset_msg_id.endswith("0" * 16)
    with pytest.raises(BrokerError, match="no queue 8"):
        broker.send_column("T", [b"a", b"b"], [0, 8])
    with pytest.raises(ValueError, match="2 bodies have 1 queue ids"):
        broker.send_column("T", [b"a", b"b"], [0])
    with pytest.raises(MessageIllegalError, match="no message"):
        broker.send_column("T", [])
    with pytest.raises(MessageIllegalError, match="not both"):
        broker.send_column("T", [b"a"], properties={"KEYS": "k"}, keys=["l"])
    with pytest.raises(MessageIllegalError, match="share one UNIQ_KEY"):
        broker.send_column("T", [b"a"], properties={"UNIQ_KEY": "k"})
    for key in ("a\x01", "a\x02b", "\ud800"):
        with pytest.raises(MessageIllegalError):
            broker.send_column("T", [b"a"], keys=[key])


@pytest.mark.parametrize("count", [3, 400])
@pytest.mark.parametrize("way", ["one", "equal", "several", "none"])
@pytest.mark.parametrize("keyed", [False, True])
def test_messages_of_a_delayed_column_wait_for_the_queues_that_were_asked_for(
    open_broker, count, way, keyed
):
    broker = open_broker(clock=lambda: 1_700_000_000_000)
    broker.update_topic(TopicConfig("T", 4, 4))
    bodies = [b"%d" % n for n in range(count)]
    keys = [f"k{n}" for n in range(count)] if keyed else None
    queue_ids = {
        "one": 3,
        "equal": [3] * count,
        "several": [n * n % 4 for n in range(count)],
        "none": None,
    }[way]
    properties = {"DELAY": "2", "p": "v", "TAGS": "A"}
    result = broker.send_column("T", bodies, queue_ids, properties=properties, keys=keys)
    if queue_ids is not None:
        assert result.queue_ids == queue_ids
    wanted = result.queue_ids
    wanted = [wanted] * count if isinstance(wanted, int) else list(wanted)
    if way == "none":
        assert wanted == [(wanted[0] + n) % 4 for n in range(count)]
    for n, body in enumerate(bodies):
        message = Message("T", body, properties={**properties, "UNIQ_KEY": f"{n:032}"})
        message.properties.update({"KEYS": keys[n]} if keys else {})
        broker.send(message, wanted[n])
    waiting = "SCHEDULE_TOPIC_XXXX", 1
    found = [broker.view.get_message(*waiting, at, 1).messages[0] for at in range(2 * count)]
    column, single = found[:count], found[count:]
    assert [m.get_property("REAL_QID") for m in column] == list(map(str, wanted))
    assert [m.msg_id for m in column] == [unique_id.decode() for unique_id in result.unique_ids]
    for alone, among in zip(single, column, strict=True):
        alone.properties["UNIQ_KEY"] = among.msg_id
        assert among.properties == alone.properties
        assert (among.body, among.store_size) == (alone.body, alone.store_size)
    if keys:
        assert [m.body for m in broker.query_message("SCHEDULE_TOPIC_XXXX", "k2").messages] == [
            b"2",
            b"2",
        ]


@pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")
def test_a_delayed_column_for_several_queues_has_no_object_for_each_message(open_broker):
    broker = open_broker(clock=lambda: 1_700_000_000_000)
    broker.update_topic(TopicConfig("T", 4, 4))
    bodies = [b"x" * 100] * 5_000
    most = []
    for queue_ids in (0, 0, None):  # the first one makes what is made once
        tracemalloc.start()
        broker.send_column("T", bodies, queue_ids, properties={"DELAY": "2", "TAGS": "A"})
        most.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert most[2] - most[1] < 100 * len(bodies), "a list item or two each"


@pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")
@pytest.mark.parametrize("keys", [None, ["k l", "", "\u4e2d"]])
@pytest.mark.parametrize("times", [0, 3])
def test_the_records_of_a_delayed_column_are_those_of_its_messages(keys, times):
    heads = [b"TAGS\x01A\x02REAL_QID\x01%d" % n for n in range(3)]
    ids = [b"%032d" % n for n in range(3)]
    bodies = [b"a", b"", b"c"]
    origin = Origin(1, bytes(8), bytes(8), 0, times)
    column = Column("S", 1, bodies, ids, keys, heads, "A", 7, 2, 5_000)
    wanted = prepare(
        [
            MessageInner(
                "S",
                1,
                body,
                b"\x02".join([head, b"UNIQ_KEY\x01" + unique_id, *texts]),
                1,
                bytes(8),
                bytes(8),
                7,
                reconsume_times=times,
                tags="A",
                keys=(unique_id.decode(), *key.split()),
                delay_time_level=2,
                delay_ms=5_000,
            )
            for body, head, unique_id, key in zip(bodies, heads, ids, keys or [""] * 3, strict=True)
            for texts in [[b"KEYS\x01" + key.encode()] if key else []]
        ]
    )
    found = prepared_column(column, origin)
    for records in (found, wanted):
        records.place(100, [7], 1_000)
    assert found.buffer == wanted.buffer
    assert found.units(100, 1_000) == wanted.units(100, 1_000)
    assert list(found.key_hashes) == list(wanted.key_hashes)
    assert list(found.key_offsets(100)) == list(wanted.key_offsets(100))


def test_a_delayed_column_for_a_queue_that_does_not_exist_is_refused(broker):
    broker.update_topic(TopicConfig("T", 4, 4))
    with pytest.raises(BrokerError, match="topic T has no queue 4"):
        broker.send_column("T", [b"a", b"b"], [0, 4], properties={"DELAY": "1"})
    assert stored(broker, "SCHEDULE_TOPIC_XXXX", 0) == []


def sender_over(broker, put_message):
    return Sender(
        BrokerConfig(),
        broker._topics,
        broker._groups,
        MessageBuilder(BrokerConfig(), parse_delay_levels(), 4 << 20),
        put=broker.store.put,
        put_message=put_message,
        unique_ids=UniqueIds(bytes(4), 1, 2),
        now=lambda: 5,
        max_message_size=4 << 20,
    )


@pytest.mark.parametrize("status", PutMessageStatus)
@pytest.mark.conformance("A12")
def test_each_answer_of_the_store_has_its_meaning(broker, status):
    answer = PutMessageResult(status, [1], [2], 3, f"because of {status}")
    sender = sender_over(broker, lambda message: answer)
    if status.stored:
        result = sender.send(Message("T", b"x"), 0, DEFAULT_SEND)
        expected = "SEND_OK" if status == "PUT_OK" else status.value
        assert (result.send_status, result.queue_offset) == (expected, 2)
        return
    with pytest.raises(BrokerError, match=f"because of {status}") as caught:
        sender.send(Message("T", b"x"), 0, DEFAULT_SEND)
    codes = {
        PutMessageStatus.SERVICE_NOT_AVAILABLE: ResponseCode.SERVICE_NOT_AVAILABLE,
        PutMessageStatus.MESSAGE_ILLEGAL: ResponseCode.MESSAGE_ILLEGAL,
        PutMessageStatus.PROPERTIES_SIZE_EXCEEDED: ResponseCode.MESSAGE_ILLEGAL,
    }
    assert caught.value.code is codes.get(status, ResponseCode.SYSTEM_ERROR)


@pytest.mark.conformance("A12")
def test_synchronous_flush_is_the_stores_setting(open_broker, root):
    config = SMALL_STORE.with_(flush_disk_type=FlushDiskType.SYNC_FLUSH)
    broker = open_broker(store_config=config)
    assert broker.send(Message("T", b"x")).send_status is SendStatus.SEND_OK


def test_exclusive_opening_sends_and_changes_topics(open_broker):
    broker = open_broker(exclusive=True)
    broker.update_topic(TopicConfig("T", 1, 1))
    broker.send(Message("T", b"x"))
    assert len(stored(broker, "T")) == 1


def test_messages_of_a_topic_with_several_tags_say_so(broker):
    broker.update_topic(TopicConfig("M", 1, 1, topic_filter_type="MULTI_TAG"))
    broker.send(Message("M", b"a"))
    broker.send_batch([Message("M", b"b"), Message("M", b"c")])
    broker.send_column("M", [b"d"])
    assert [message.sys_flag for message in stored(broker, "M")] == [2, 2, 2, 2]
