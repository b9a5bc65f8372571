"""Records of golden commit logs, byte for byte, and what RocketMQ decodes from them."""

import hashlib
from array import array
from typing import Any

import pytest

from storage.format.check import CheckKind, check_record, scan_records
from storage.format.host import pack_host
from storage.format.message import MessageExt
from storage.format.names import file_name
from storage.format.properties import encode_properties, find_property, parse_properties
from storage.format.record import blank_record, encode_record, read_head
from tests.support import golden
from tests.support.golden_log import head_of, log_files, records, walk

ALL = pytest.mark.parametrize("name", golden.names())


def encoded_again(message: MessageExt) -> bytes:
    """Encode from decoded values, hosts as text and the CRC computed again."""
    return encode_record(
        topic=message.topic,
        queue_id=message.queue_id,
        body=message.stored_body,
        properties=message.property_bytes,
        queue_offset=message.queue_offset,
        physical_offset=message.commitlog_offset,
        store_timestamp=message.store_timestamp,
        born_timestamp=message.born_timestamp,
        born_host=pack_host(message.born_host),
        store_host=pack_host(message.store_host),
        flag=message.flag,
        sys_flag=message.sys_flag,
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
        version=message.version,
    )


@ALL
def test_each_record_is_the_same_bytes_after_decoding_and_encoding(name: str) -> None:
    found = records(name)
    assert found
    different = []
    for offset, buffer, message in found:
        assert message.commitlog_offset == offset
        if encoded_again(message) != buffer:
            different.append(offset)
    assert different == spoiled_bodies(name)


def spoiled_bodies(name: str) -> list[int]:
    """Offsets of records whose body was overwritten by hand, so that its CRC is wrong."""
    damage = golden.manifest(name)["facts"].get("damage", {})
    return [int(damage["file"]) + damage["position"]] if "bad-crc" in name else []


@ALL
def test_properties_are_the_same_bytes_after_parsing_and_encoding(name: str) -> None:
    for found in records(name):
        stored = found.message.property_bytes
        names = [item.partition(b"\x01")[0] for item in stored.split(b"\x02")]
        if len(names) != len(set(names)):
            continue  # a batch glues its own properties to those of its items; the last one counts
        assert encode_properties(found.message.properties) == stored.removesuffix(b"\x02")


@ALL
def test_each_property_is_found_without_parsing_the_others(name: str) -> None:
    for found in records(name):
        data = found.message.property_bytes
        for key, value in parse_properties(data).items():
            assert find_property(data, key) == value
        assert find_property(data, "ABSENT") is None


@ALL
def test_each_log_file_but_the_last_ends_with_the_blank_record(name: str) -> None:
    kind = golden.manifest(name)["facts"].get("kind", "")
    if kind in ("no-blank", "bad-crc-middle"):
        return
    files = [path for path in log_files(name) if any(head_of(path)[:8])]
    for path in files[:-1]:
        _, end = walk(path)
        size = path.stat().st_size
        buffer = head_of(path)
        assert buffer[end : end + 8] == blank_record(size - end)
        assert check_record(buffer, end, size) == (CheckKind.BLANK, size - end, "")
        assert not any(buffer[end + 8 :])
        assert path.name == file_name(int(path.name))


@ALL
def test_scanning_finds_what_checking_one_by_one_finds(name: str) -> None:
    for path in log_files(name):
        buffer = head_of(path)
        one_by_one = array("q")
        position = 0
        while (result := check_record(buffer, position, len(buffer))).kind is CheckKind.MESSAGE:
            one_by_one.append(result.size)
            position += result.size
        assert scan_records(buffer, 0, len(buffer)) == (one_by_one, position, result)


def expected_host(java: str) -> bytes:
    return pack_host(java)  # Java writes IPv6 without shortening; packed, both are the same


@ALL
def test_decoded_fields_are_those_that_rocketmq_gives(name: str) -> None:
    manifest = golden.manifest(name)
    by_offset = {found.offset: found for found in records(name)}
    rows: list[dict[str, Any]] = [*manifest["messages"], *manifest.get("foreign", [])]
    assert rows
    for row in rows:
        found = by_offset[row["commitLogOffset"]]
        message = found.message
        if "unit" not in row:
            assert hashlib.sha256(found.buffer).hexdigest() == row["recordSha256"]
        decoded = {
            "topic": message.topic,
            "queueId": message.queue_id,
            "queueOffset": message.queue_offset,
            "commitLogOffset": message.commitlog_offset,
            "storeSize": message.store_size,
            "magic": read_head(found.buffer).magic,
            "bodyCRC": message.body_crc,
            "sysFlag": message.sys_flag,
            "flag": message.flag,
            "bornTimestamp": message.born_timestamp,
            "storeTimestamp": message.store_timestamp,
            "bornHost": message.born_host_bytes,
            "storeHost": message.store_host_bytes,
            "reconsumeTimes": message.reconsume_times,
            "preparedTransactionOffset": message.prepared_transaction_offset,
            "properties": message.properties or None,
            "bodyLength": len(message.body),
            "bodySha256": hashlib.sha256(message.body).hexdigest(),
            "storedBodyLength": len(message.stored_body),
            "offsetMsgId": message.offset_msg_id,
        }
        expected = {field: row[field] for field in decoded.keys() & row.keys()}
        for host in {"bornHost", "storeHost"} & expected.keys():
            # Java does not shorten IPv6 addresses; packed, both forms are the same.
            expected[host] = pack_host(expected[host])
        assert {field: decoded[field] for field in expected} == expected
        if "bodyText" in row:
            assert message.body.decode() == row["bodyText"]
