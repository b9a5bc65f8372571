"""What became of messages, their traces, and what their ids contain."""

import json
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from client.producer.config import ProducerConfig
from client.producer.producer import Producer
from storage.format.message import TRACE_TOPIC, Message
from tests.support import golden
from tests.support.cli import run

ID = "0A000001123418B4AAC247B760000007"


def rows(*args: object) -> list[dict[str, Any]]:
    result = run("message", *args, "-o", "jsonl")
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.lines]


@pytest.mark.feature(39)
def test_an_offset_id_names_broker_and_place(tmp_path):
    row = rows("decode-id", "7F00000100002A9F0000000000001000")[0]
    assert row == {
        "msg_id": "7F00000100002A9F0000000000001000",
        "kind": "offset",
        "host": "127.0.0.1:10911",
        "commitlog_offset": 4096,
        "born_timestamp": None,
        "pid": None,
        "loader_hash": None,
        "counter": None,
    }


@pytest.mark.feature(39)
def test_a_unique_id_names_client_and_time():
    row = rows("decode-id", ID.lower(), "--tz", "UTC")[0]
    assert (row["msg_id"], row["kind"], row["host"]) == (ID, "unique", "10.0.0.1")
    assert (row["pid"], row["loader_hash"], row["counter"]) == (4660, "18b4aac2", 7)
    assert row["born_timestamp"] % 86_400_000 == 1_700_000_000_000 % 86_400_000


def test_ids_of_ipv6_hosts_have_56_digits():
    for row in golden.manifest("ipv6-4.9")["messages"][::9]:
        shown = rows("decode-id", row["offsetMsgId"])[0]
        assert shown["kind"] == "offset"
        assert shown["commitlog_offset"] == row["commitLogOffset"]


def test_several_ids_are_a_list_and_a_kind_can_be_forced():
    shown = rows("decode-id", ID, "7F00000100002A9F0000000000001000", "--as", "unique")
    assert [row["kind"] for row in shown] == ["unique", "unique"]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["nonsense"], "'nonsense' is not a message id"),
        ([ID[:-1]], "is not a message id"),
        ([ID, "--as", "other"], "--as: 'other' is not one of offset, unique"),
        ([ID, "--as", "offset"], "is not an offset id"),
    ],
)
def test_what_is_no_id_is_one_sentence(args, sentence):
    result = run("message", "decode-id", *args)
    assert (result.code, result.err.count("\n"), result.raw) == (2, 1, b"")
    assert sentence in result.err


# -- traces -----------------------------------------------------------------------------------


def trace_records(unique: str) -> bytes:
    """What a producer and a consumer store: fields by U+0001, records by U+0002."""
    pub = ["Pub", 1000, "DefaultRegion", "producers", "orders", unique, "TagA", "k1"]
    pub += ["127.0.0.1:10911", 11, 7, 0, "7F00000100002A9F0000000000000000", "true"]
    before = ["SubBefore", 2000, "DefaultRegion", "billing", "REQ1", unique, 1, "k1"]
    after = ["SubAfter", "REQ1", unique, 33, "false", "k1", 1, 2033, "billing"]
    return "".join(
        "\x01".join(map(str, record)) + "\x02" for record in (pub, before, after)
    ).encode()


@pytest.mark.feature(37)
def test_a_trace_is_told_line_by_line(store):
    body = trace_records(ID)
    run("produce", TRACE_TOPIC, "-D", "", "-k", ID, stdin=body)
    run("produce", TRACE_TOPIC, "-D", "", "-k", "OTHER", stdin=trace_records("OTHER"))
    told = rows("trace", ID)
    assert [
        (row["at_timestamp"], row["trace_type"], row["group"], row["success"], row["cost_ms"])
        for row in told
    ] == [
        (1000, "Pub", "producers", True, 7),
        (2000, "SubBefore", "billing", None, None),
        (2033, "SubAfter", "billing", False, 33),
    ]
    assert told[0]["topic"] == "orders"
    assert told[1]["retry_times"] == 1
    assert told[2]["context_code"] == 1
    assert rows("trace", ID, "--trace-topic", TRACE_TOPIC) == told
    missing = run("message", "trace", ID, "--trace-topic", "none")
    assert (missing.code, "topic none does not exist in" in missing.err) == (3, True)


@pytest.mark.slow
@pytest.mark.feature(37)
def test_a_message_is_followed_from_its_sender_to_its_consumer(store):
    config = ProducerConfig(enable_msg_trace=True)
    with (
        EmbeddedBroker.open(store) as broker,
        Producer("senders", brokers=[broker], config=config) as producer,
    ):
        sent = producer.send(Message("t", b"x", keys="order-7"))
    traced = ("--set", "enableMsgTrace=true", "--from-where", "first")
    result = run("consume", "t", "-g", "billing", "-c", 1, *traced)
    assert (result.code, result.out) == (0, "x\n"), result.err
    told = rows("trace", sent.msg_id)
    assert [(row["trace_type"], row["group"]) for row in told] == [
        ("Pub", "senders"),
        ("SubBefore", "billing"),
        ("SubAfter", "billing"),
    ]
    assert told[0]["offset_msg_id"] == sent.offset_msg_id
    assert told[1]["request_id"] == told[2]["request_id"]
    assert [each["event"] for each in rows("life", sent.msg_id)][:2] == ["STORED", "READ_PAST"]


def test_a_message_without_a_trace_is_not_found(store):
    result = run("message", "trace", ID)
    assert (result.code, result.err.count("\n")) == (3, 1)
    assert f"topic {TRACE_TOPIC} of {store} has no trace of {ID}" in result.err


# -- life lines -------------------------------------------------------------------------------


@pytest.mark.feature(38)
def test_the_life_of_a_golden_message_that_died():
    """Stored, given back with its next time, retried, given up: as the manifest's records say."""
    root = golden.store("retry-dlq-4.9")
    messages = golden.manifest("retry-dlq-4.9")["messages"]
    dead = [row for row in messages if row["topic"].startswith("%DLQ%")]
    for row in dead[:3]:
        unique = row["properties"]["UNIQ_KEY"]
        copies = [m for m in messages if (m["properties"] or {}).get("UNIQ_KEY") == unique]
        by_place = sorted(copies, key=lambda m: m["commitLogOffset"])
        for name in (unique, row["offsetMsgId"]):
            told = rows("life", name, "-S", root)
            records = [each for each in told if each["at_timestamp"] is not None]
            assert [(each["topic"], each["queue_offset"]) for each in records] == [
                (m["topic"], m["queueOffset"]) for m in by_place
            ]
            events = [each["event"] for each in records]
            assert events[0] == "STORED"
            assert "DEAD" in events
            for each, m in zip(records, by_place, strict=True):
                if m["topic"] == "SCHEDULE_TOPIC_XXXX":
                    assert each["due_timestamp"] == m["tagsCode"]
                    assert each["event"] in ("FAILED", "DELAYED")


@pytest.mark.slow
@pytest.mark.feature(38)
def test_which_groups_have_read_past_a_message():
    """mqadmin's rule: progress beyond the queue offset."""
    root = golden.store("basic-4.9")
    manifest = golden.manifest("basic-4.9")
    progress = manifest["consumerOffset"]["offsetTable"]
    seen = set()
    for row in manifest["messages"][::23]:
        told = rows("life", row["offsetMsgId"], "-S", root)
        expected = {
            (name.partition("@")[2], "READ_PAST" if offset > row["queueOffset"] else "WAITING")
            for name, offsets in progress.items()
            if name.partition("@")[0] == row["topic"]
            for queue, offset in offsets.items()
            if int(queue) == row["queueId"]
        }
        shown = {
            (each["group"], each["event"])
            for each in told
            if each["at_timestamp"] is None
            and (each["topic"], each["queue_offset"]) == (row["topic"], row["queueOffset"])
        }
        assert shown == expected
        seen |= {event for _, event in shown}
    assert seen == {"READ_PAST", "WAITING"}


def test_life_by_key_and_by_place_of_a_delayed_message(store):
    assert run("produce", "t", "-k", "k1", "--delay-level", 5, stdin=b"later\n").code == 0
    told = rows("life", "k1")
    assert [each["event"] for each in told] == ["DELAYED"]
    assert told[0]["due_timestamp"] == told[0]["at_timestamp"] + 60_000
    assert rows("life", told[0]["msg_id"]) == told
    assert rows("life", "k1", "--scan") == told


def test_the_life_of_a_key_has_no_message_of_a_key_in_the_other_case(store):
    for key in ("order-a", "ORDER-A"):
        assert run("produce", "t", "-k", key, "-Q", 0, stdin=b"x\n").code == 0
    lower, upper = rows("life", "order-a"), rows("life", "ORDER-A")
    assert [each["queue_offset"] for each in lower] == [0]
    assert [each["queue_offset"] for each in upper] == [1]
    for shown in (lower, upper):
        assert rows("life", shown[0]["msg_id"].lower()) == shown
        assert rows("life", shown[0]["offset_msg_id"].lower()) == shown


@pytest.mark.feature(38)
@pytest.mark.slow
def test_the_life_of_a_message_goes_on_after_a_redrive_under_its_new_id(store):
    """Given back once, dead, sent again, dead again: one line, by any of its names."""
    run("produce", "t", "-k", "k1", "-Q", 0, stdin=b"x\n")
    fail = ("consume", "t", "-g", "g", "-c", 1, "--delay-level", -1, "--exec", "false")
    assert run(*fail, "--from-where", "first").code == 1
    assert run("dlq", "redrive", "g", "--all", "--execute", "--yes").code == 0
    assert run(*fail).code == 1
    told = rows("life", "k1")
    events = [
        (each["event"], each["group"], each["topic"]) for each in told if each["at_timestamp"]
    ]
    assert events == [
        ("STORED", None, "t"),
        ("DEAD", "g", "%DLQ%g"),
        ("REDRIVEN", None, "t"),
        ("DEAD", "g", "%DLQ%g"),
    ]
    assert [each["topic"] for each in told if each["event"] == "READ_PAST"] == ["t", "t"]
    assert "exit code 1" in next(each["reason"] for each in told if each["event"] == "DEAD")
    ids = {each["msg_id"] for each in told}
    assert len(ids) == 2
    for name in (*ids, told[0]["offset_msg_id"], told[-1]["offset_msg_id"]):
        assert rows("life", name) == told


def test_a_key_of_very_many_messages_has_no_life(store):
    run("produce", "t", "-k", "hot", stdin=b"x\n" * 1001)
    result = run("message", "life", "hot")
    assert (result.code, result.err.count("\n"), result.raw) == (2, 1, b"")
    assert "1,001 records have the key hot" in result.err


def test_what_is_not_there_is_not_found(store):
    result = run("message", "life", "nothing")
    assert (result.code, result.err.count("\n"), result.raw) == (3, 1, b"")
    assert "no message has the id or key nothing" in result.err


@pytest.mark.parametrize(
    "words",
    [
        ["search", "1", "T", "-Q", 9],
        ["search", "1", "T", "-Q", "0,9", "--count-only"],
        ["export", "T", "-Q", 9],
        ["stats", "T", "-Q", 9],
        ["query", "T", "-k", "K", "-Q", 9],
        ["query", "T", "--tag", "A", "-Q", 9],
        ["get", "T", "-Q", 9, "-O", 0],
    ],
)
def test_a_queue_that_the_named_topic_does_not_have_is_an_error(store, words):
    run("produce", "T", stdin=b"1\n")
    result = run("message", *words)
    assert (result.code, result.out) == (3, "")
    assert "topic T has no queue 9" in result.err


def test_a_queue_of_one_of_the_named_topics_is_none(store):
    run("topic", "create", "T", "--queues", 2)
    run("topic", "create", "U", "--queues", 9)
    run("produce", "U", "-Q", 8, stdin=b"1\n")
    assert len(run("message", "export", "T", "U", "-Q", 8).lines) == 1
    result = run("message", "export", "T", "U", "-Q", 9)
    assert result.code == 3
    assert "none of the topics T, U has a queue 9" in result.err
    assert run("message", "stats", "-Q", 9).code == 0
