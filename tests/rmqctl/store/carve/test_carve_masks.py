"""What a rule hides is nowhere in the bytes of the new store."""

import json
import struct
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from client.producer.config import ProducerConfig
from rmqctl import Message, Producer
from rmqctl.admin.store.record_transform import RecordTransform, UnmaskableError
from rmqctl.message.exchange.masking import parse_rules
from rmqctl.store.carve.masks import RuleMask
from storage.config import SMALL_STORE
from storage.format.compress import compress
from storage.format.crc import crc32
from storage.format.java_hash import key_hash, tags_code
from storage.format.message import TRACE_TOPIC, MessageSysFlag
from storage.format.properties import encode_properties
from storage.format.record import decode_record, encode_record
from storage.readonly import StoreView
from storage.tools.carve.records import record_of
from storage.tools.fsck import fsck
from tests.support import golden
from tests.support.cli import run
from tests.support.dead_letters import give_back
from tests.support.same_records import all_messages

SECRETS = ("ann@example.org", "topsecret", "Ann-Tag", "customer-4711")
RULES = "json.who.email=hash,keys=hash,tags=stars,property.token=drop"
GROUP = "readers"
DONE = ("--execute", "--yes", "-q")


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Messages, short and compressed, with their dead letters and traces; a group's progress."""
    root = tmp_path / "private"
    create_store(root, SMALL_STORE)
    config = ProducerConfig(enable_msg_trace=True)
    with EmbeddedBroker.open(root) as broker:
        with Producer("shop", brokers=[broker], config=config) as producer:
            for number in range(60):
                body = {"who": {"email": "ann@example.org"}, "n": number}
                if number % 3 == 0:
                    body["padding"] = {"x": "y" * 9000}
                message = Message(
                    "orders",
                    json.dumps(body).encode(),
                    keys=["customer-4711", f"order-{number}"],
                    tags="Ann-Tag",
                    properties={"token": "topsecret", "shown": "yes"},
                )
                producer.send(message)
        for message in all_messages(broker.view, ["orders"])[:5]:
            give_back(broker, GROUP, message)
        broker.progress.move(GROUP, {("orders", 0): 2}, {"reason": "ann@example.org"})
    return root


def everything_in(root: Path) -> bytes:
    """All bytes of a store without long runs of zeros, and after them what unpacks from them."""
    pieces = []
    for path in sorted(root.rglob("*")):
        if path.is_file():
            pieces += [part for part in path.read_bytes().split(bytes(64)) if part]
    whole = b"\0".join(pieces)
    unpacked = []
    at = whole.find(b"\x78")
    while at >= 0:
        with suppress(zlib.error):
            unpacked.append(zlib.decompressobj().decompress(whole[at:]))
        at = whole.find(b"\x78", at + 1)
    return whole + b"".join(unpacked)


def traces_of_secrets(root: Path) -> list[str]:
    data = everything_in(root)
    found = [secret for secret in SECRETS if secret.encode() in data]
    for topic in ("orders", "%DLQ%readers", TRACE_TOPIC):
        hashed = struct.pack(">i", key_hash(topic, "customer-4711"))
        if hashed in data:
            found.append(f"key hash of {topic}")
    if struct.pack(">q", tags_code("Ann-Tag")) in data:
        found.append("tag hash")
    return found


@pytest.mark.slow
@pytest.mark.feature(121)
def test_nothing_masked_is_anywhere_in_the_bytes(private, tmp_path):
    assert len(traces_of_secrets(private)) >= len(SECRETS) + 2, "or nothing would be shown"
    out = tmp_path / "out"
    options = ("-t", "orders", "-t", "%DLQ%readers", "-t", TRACE_TOPIC, "--mask", RULES)
    result = run("store", "carve", out, "-S", private, *options, *DONE)
    assert result.code == 0, result.err
    assert traces_of_secrets(out) == []
    with StoreView.open(out) as view:
        assert fsck(view).healthy
        found = all_messages(view, ["orders"])
        assert len(found) == 60
        masks = {json.loads(message.body)["who"]["email"] for message in found}
        assert len(masks) == 1
        assert len(next(iter(masks))) == 12
        packed = [m for m in found if m.sys_flag & MessageSysFlag.COMPRESSED_FLAG]
        assert len(packed) == 20
        assert json.loads(packed[0].body)["padding"] == {"x": "y" * 9000}
        assert all(crc32(m.stored_body) == m.body_crc for m in found)
        assert {m.tags for m in found} == {"*******"}
        assert {m.get_property("shown") for m in found} == {"yes"}
        hidden = found[0].keys[0]
        hits = view.query_message("orders", hidden, 64).messages
        assert len(hits) == 60
        with StoreView.open(private) as old:
            before = all_messages(old, ["orders"])
        assert [m.msg_id for m in found] == [m.msg_id for m in before]
        assert [m.queue_offset for m in found] == [m.queue_offset for m in before]


@pytest.mark.slow
def test_the_trace_of_a_masked_message_is_still_a_trace(private, tmp_path):
    out = tmp_path / "out"
    rules = "keys=hash,tags=drop"
    options = ("-t", "orders", "-t", TRACE_TOPIC, "--mask", rules, "--mask-key", "k")
    assert run("store", "carve", out, "-S", private, *options, *DONE).code == 0
    with StoreView.open(out) as view:
        message = all_messages(view, ["orders"])[0]
        [trace] = [
            m
            for m in all_messages(view, [TRACE_TOPIC])
            if message.msg_id.encode() in m.body and m.body.startswith(b"Pub")
        ][:1]
    line = next(r for r in trace.body.decode().split("\x02") if message.msg_id in r)
    fields = line.split("\x01")
    assert fields[4] == "orders"
    assert fields[6] == ""
    assert fields[7].split(" ") == list(message.keys)


@pytest.mark.slow
def test_ids_and_hosts_are_nowhere_either_and_copies_still_belong_together(private, tmp_path):
    with StoreView.open(private) as view:
        before = all_messages(view)
        ids = {m.msg_id for m in before if m.topic == "orders"}
        origins = {m.get_property("ORIGIN_MESSAGE_ID") or "" for m in before} - {""}
        offset_ids = {m.offset_msg_id for m in before}
    assert (len(ids), len(origins)) == (60, 5)
    wanted = {text.encode() for text in ids | origins | offset_ids}
    there = everything_in(private)
    assert len([text for text in wanted if text in there]) >= 120
    out = tmp_path / "out"
    options = ("-t", "orders", "-t", "%DLQ%readers", "-t", TRACE_TOPIC)
    result = run(
        *("store", "carve", out, "-S", private, *options, "--mask", "ids=hash,hosts=drop", *DONE)
    )
    assert result.code == 0, result.err
    data = everything_in(out)
    assert [text for text in wanted if text in data] == []
    assert b"127.0.0.1" not in data
    with StoreView.open(out) as view:
        assert fsck(view).healthy
        after = all_messages(view)
        assert {m.born_host for m in after} == {m.store_host for m in after} == {"0.0.0.0:0"}
        assert len({m.msg_id for m in after if m.topic == "orders"}) == 60
        dead = next(m for m in after if m.topic == "%DLQ%readers")
        copies = view.query_message("orders", dead.msg_id, 64).messages
        assert [m.body for m in copies] == [dead.body]
        traces = view.query_message(TRACE_TOPIC, dead.msg_id, 64).messages
        assert len(traces) == 1
        assert dead.msg_id.encode() in traces[0].body
    [row] = run("message", "get", dead.msg_id, "-S", out, "-o", "jsonl").lines[:1]
    assert json.loads(row)["msg_id"] == dead.msg_id


def test_an_export_of_traces_hides_the_same(private):
    rules = "keys=hash,tags=drop,ids=hash,hosts=drop"
    exported = run("message", "export", "-S", private, "-t", TRACE_TOPIC, "--mask", rules)
    assert exported.code == 0
    assert len(exported.lines) > 0
    for secret in ("customer-4711", "Ann-Tag", "127.0.0.1"):
        assert secret not in exported.out, secret
    assert "Pub" in exported.out


@pytest.mark.slow
def test_a_rule_that_matches_nothing_is_told(private, tmp_path):
    rules = "keys=hash,property.tokem=drop,json.who.mail=hash"
    out = tmp_path / "out"
    result = run("store", "carve", out, "-S", private, "-t", "orders", "--mask", rules, *DONE[:2])
    assert result.code == 0
    warned = [line for line in result.err.splitlines() if "matched nothing" in line]
    assert warned == [
        "rmqctl: warning: --mask: property.tokem=drop matched nothing",
        "rmqctl: warning: --mask: json.who.mail=hash matched nothing",
    ]
    exported = run(
        "message", "export", "-S", private, "-t", "orders", "--mask", rules, "--as", "jsonl"
    )
    assert exported.err.count("matched nothing") == 2


def record(body: bytes, properties: bytes, sys_flag: int = 0, **more: int) -> bytes:
    return encode_record(
        topic="t",
        queue_id=1,
        body=body,
        properties=properties,
        queue_offset=7,
        physical_offset=99,
        store_timestamp=3,
        born_timestamp=2,
        born_host=bytes(8),
        store_host=bytes(range(20)),
        sys_flag=sys_flag,
        **more,
    )


def test_a_property_that_hides_behind_another_of_its_name_goes_too():
    twice = b"token\x01topsecret\x02token\x01shown\x02KEYS\x01k"
    made = RecordTransform(None, RuleMask(parse_rules("property.token=stars", None))).remake(
        record(b"b", twice)
    )
    assert made is not None
    assert b"topsecret" not in made
    assert decode_record(made).properties == {"token": "*****", "KEYS": "k"}


def test_a_body_that_can_not_be_unpacked_does_not_go_over():
    flags = MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
    remaker = RecordTransform(None, RuleMask(parse_rules("json.a=hash", None)))
    with pytest.raises(UnmaskableError):
        remaker.remake(record(b"\x78\x9ctopsecret", b"", flags))
    good = remaker.remake(record(compress(b'{"a":"topsecret"}'), b"", flags))
    assert good is not None
    assert b"topsecret" not in decode_record(good).body


def test_all_else_of_a_masked_record_stays():
    properties = encode_properties({"UNIQ_KEY": "U", "KEYS": "a b", "x": "y", "DELAY": "3"})
    old = record(b"body", properties, 8, flag=-3, reconsume_times=4, version=2)
    made = RecordTransform(None, RuleMask(parse_rules("keys=text:z", None))).remake(old)
    assert made is not None
    new, was = decode_record(made), decode_record(old)
    for name in (
        *("topic", "queue_id", "queue_offset", "commitlog_offset", "flag", "sys_flag", "body_crc"),
        *("born_timestamp", "born_host", "store_timestamp", "store_host", "version"),
        *("reconsume_times", "prepared_transaction_offset"),
    ):
        assert getattr(new, name) == getattr(was, name), name
    assert new.body == b"body"
    assert new.properties == {"UNIQ_KEY": "U", "KEYS": "z z", "x": "y", "DELAY": "3"}


@pytest.mark.parametrize("name", ["basic-4.9", "ipv6-4.9", "basic-5.3"])
def test_a_record_is_masked_as_if_it_were_encoded_anew(name):
    rules = parse_rules("keys=hash,property.UNIQ_KEY=stars,tags=text:some", "key")
    remaker, mask = RecordTransform(None, RuleMask(rules)), RuleMask(rules)
    with StoreView.open(golden.store(name)) as view:
        log = view.files.apart().log
        for message in all_messages(view):
            file = log.at(message.commitlog_offset // log.file_size * log.file_size)
            assert file is not None
            at = message.commitlog_offset % log.file_size
            old = file.map[at : at + message.store_size]
            wanted = decode_record(old)
            mask.apply(wanted)
            wanted.property_bytes = encode_properties(wanted.properties)
            assert remaker.remake(old) == record_of(wanted)


def test_properties_that_grow_too_long_leave_a_record_out():
    remaker = RecordTransform(None, RuleMask(parse_rules(f"keys=text:{'k' * 40}", None)))
    with pytest.raises(UnmaskableError, match="the properties are longer than 32767 bytes"):
        remaker.remake(record(b"b", encode_properties({"KEYS": " ".join("a" * 1000)})))
