"""Known bytes: small cases worked out by hand, most of them confirmed with RocketMQ itself."""

from datetime import UTC

from storage.format.check import CheckKind, check_record
from storage.format.checkpoint import CheckpointData
from storage.format.cq_unit import PRE_BLANK, StoreUnit, is_ext_addr
from storage.format.cqext import ext_address
from storage.format.host import pack_host
from storage.format.index_file import IndexEntry, IndexHeader, put_keys
from storage.format.java_hash import java_hash, key_hash, tags_code
from storage.format.message_id import UniqueIds, decode_unique_id
from storage.format.properties import encode_properties
from storage.format.record import blank_record, decode_record, encode_record

STORED = 1700000000123

PLAIN = bytes.fromhex(
    "0000009cdaa320a73610a686000000020000000000000000000000070000000000001000000000000000018b"
    "cfe568000a0000010000c3510000018bcfe5687b7f00000100002a9f00000000000000000000000000000005"
    "68656c6c6f09546f70696354657374003354414753015461674102554e49515f4b4559013746303030303031"
    "303030413138423441414332303030303030303030334538"
)
IPV6 = bytes.fromhex(
    "00000074daa320a7000000000000000000000000000000000000000000000000000000000000003000000000"
    "0000000100000000000000000000000000000001000000010000000000000002fe8000000000000000000000"
    "0000000100002a9f0000000000000000000000000000000001540000"
)
VERSION_2 = bytes.fromhex(
    "0000006fdaa320ab50a2b8410000000000000000000000000000000000000000000000000000000000000000"
    "000000017f0000010000000000000000000000027f00000100002a9f00000000000000000000000000000006"
    "e4bda0e5a5bd00045454545400094b4559530161206202"
)


def test_hashes_are_those_of_java() -> None:
    assert [java_hash(text) for text in ("TagA", "TagB", "TagA||TagB", "\u4e2d\u6587", "")] == [
        2598919,
        2598920,
        1789476431,
        646394,
        0,
    ]
    assert java_hash("polygenelubricants") == -(1 << 31)
    assert tags_code("TopicTest#ORDER_1") == -1111208162
    assert key_hash("TopicTest", "ORDER_1") == 1111208162
    assert key_hash("SCHEDULE_TOPIC_XXXX", "k3") == 1975252915


def test_a_plain_record() -> None:
    buffer = encode_record(
        topic="TopicTest",
        queue_id=2,
        body=b"hello",
        properties=encode_properties(
            {"TAGS": "TagA", "UNIQ_KEY": "7F000001000A18B4AAC20000000003E8"}
        ),
        queue_offset=7,
        physical_offset=4096,
        store_timestamp=STORED,
        born_timestamp=1700000000000,
        born_host=pack_host("10.0.0.1:50001"),
        store_host=pack_host("127.0.0.1:10911"),
    )
    assert buffer == PLAIN
    message = decode_record(PLAIN)
    assert message.tags == "TagA"
    assert message.body_crc == 907060870
    assert message.msg_id == "7F000001000A18B4AAC20000000003E8"
    assert message.offset_msg_id == "7F00000100002A9F0000000000001000"
    assert (message.born_host, message.store_host) == ("10.0.0.1:50001", "127.0.0.1:10911")


def test_an_ipv6_record_without_body_and_properties() -> None:
    buffer = encode_record(
        topic="T",
        queue_id=0,
        body=b"",
        properties=b"",
        queue_offset=0,
        physical_offset=0,
        store_timestamp=2,
        born_timestamp=1,
        born_host=pack_host("[::1]:1"),
        store_host=pack_host("[fe80::1]:10911"),
    )
    assert buffer == IPV6
    message = decode_record(IPV6)
    assert (message.born_host, message.store_host) == ("[::1]:1", "[fe80::1]:10911")
    assert (message.body, message.properties) == (b"", {})


def test_a_version_2_record() -> None:
    message = decode_record(VERSION_2)
    assert message.version == 2
    assert message.topic == "TTTT"
    assert message.body.decode() == "\u4f60\u597d"
    assert message.keys == ("a", "b")
    buffer = encode_record(
        topic="TTTT",
        queue_id=0,
        body=message.body,
        properties=encode_properties({"KEYS": "a b"}) + b"\x02",
        queue_offset=0,
        physical_offset=0,
        store_timestamp=2,
        born_timestamp=1,
        born_host=pack_host("127.0.0.1:0"),
        store_host=pack_host("127.0.0.1:10911"),
        version=2,
    )
    assert buffer == VERSION_2


def test_units() -> None:
    def pack(*fields: int) -> str:
        return StoreUnit(*fields).pack().hex()

    assert pack(4096, 156, tags_code("TagA")) == "00000000000010000000009c000000000027a807"
    assert pack(8192, 220, STORED + 10_000) == "0000000000002000000000dc0000018bcfe58f8b"
    assert pack(0, 0, tags_code("polygenelubricants"))[24:] == "ffffffff80000000"
    assert PRE_BLANK.hex() == "00000000000000007fffffff0000000000000000"
    assert not is_ext_addr(-(1 << 31))
    assert pack(0, 0, ext_address(0))[24:] == "8000000000000000"
    assert is_ext_addr(ext_address(0))


def test_an_index_file_of_three_keys() -> None:
    unique = "7F000001000A18B4AAC20000000003E8"
    hashes = [key_hash("TopicTest", key) for key in (unique, "k1", "k1")]
    puts = put_keys(
        IndexHeader(),
        10,
        lambda _: 0,
        hashes,
        [4096, 4096, 5000],
        [STORED, STORED, 1700000005000],
    )
    assert puts.header.pack().hex() == (
        "0000018bcfe5687b0000018bcfe57b88000000000000100000000000000013880000000200000004"
    )
    assert (puts.first_entry, dict(zip(puts.slots, puts.slot_values, strict=True))) == (
        1,
        {7: 1, 4: 3},
    )
    assert puts.entries.hex() == (
        "24ce285f000000000000100000000000" "00000000"
        "0029e6a8000000000000100000000000" "00000000"
        "0029e6a8000000000000138800000004" "00000002"
    )  # fmt: skip
    assert IndexEntry.unpack_from(puts.entries, 40) == (2746024, 5000, 4, 2)


def test_a_checkpoint() -> None:
    buffer = CheckpointData(STORED, STORED, 0).pack()
    assert len(buffer) == 4096
    assert buffer[:24].hex() == "0000018bcfe5687b0000018bcfe5687b0000000000000000"
    assert not any(buffer[24:])


def test_a_unique_id() -> None:
    ids = UniqueIds(bytes((10, 0, 0, 1)), 4660, 0x18B4AAC2, UTC)
    for _ in range(7):
        ids.next(1700000000000)
    unique_id = ids.next(1700000000000)
    assert unique_id == "0A000001123418B4AAC247B760000007"
    parts = decode_unique_id(unique_id, 1700000000001, UTC)
    assert parts == (bytes((10, 0, 0, 1)), 4660, 0x18B4AAC2, 1700000000000, 7)


def test_a_full_file_ends_with_a_blank_record() -> None:
    record = encode_record(
        topic="PyTopic",
        queue_id=0,
        body=bytes(33),
        properties=b"",
        queue_offset=0,
        physical_offset=0,
        store_timestamp=1,
        born_timestamp=1,
        born_host=bytes(8),
        store_host=bytes(8),
    )
    assert len(record) == 131
    blank = blank_record(1024 - 7 * 131)
    assert blank.hex() == "0000006bcbd43194"
    buffer = (record * 7 + blank).ljust(1024, b"\0")
    assert check_record(buffer, 917, 1024) == (CheckKind.BLANK, 107, "")
    assert blank_record(124).hex() == "0000007ccbd43194"
