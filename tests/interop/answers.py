"""What our StoreView says about a store, in the rows and names of RocketMQ's answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from storage.format.message import SCHEDULE_TOPIC, MessageExt
from storage.format.names import COMMITLOG, file_name
from storage.format.record import MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2
from storage.readonly import Boundary, StoreView
from tests.interop.store_probe import Row


def dump(view: StoreView) -> Row:
    """Give the queues and messages of `OpenStore.dump` as we see them."""
    queues = []
    messages = []
    for topic, queue_id in view.queues():
        minimum, maximum = view.queue_bounds(topic, queue_id)
        earliest = view.earliest_message_time(topic, queue_id)
        queues.append(
            {
                "topic": topic,
                "queueId": queue_id,
                "minOffset": minimum,
                "maxOffset": maximum,
                "earliestMessageTime": -1 if earliest is None else earliest,
                "messageTotal": maximum - minimum,
            }
        )
        messages += [
            _row(view, message) for message in read_queue(view, topic, queue_id, minimum, maximum)
        ]
    return {
        "minPhyOffset": view.log_min_offset(),
        "maxPhyOffset": view.log_max_offset(),
        "logFileSize": view.config.mapped_file_size_commit_log,
        "queues": queues,
        "messages": messages,
    }


def read_queue(
    view: StoreView, topic: str, queue_id: int, start: int = 0, end: int | None = None
) -> list[MessageExt]:
    """Read a queue by pulls; each must find something until the end."""
    found: list[MessageExt] = []
    end = view.max_offset_in_queue(topic, queue_id) if end is None else end
    while start < end:
        result = view.get_message(topic, queue_id, start, 32)
        assert result.messages, f"{topic} {queue_id} at {start} of {end}: {result.status}"
        found += result.messages
        start = result.next_begin_offset
    return found


def same_as(ours: Row, javas: Row) -> None:
    """Check that both dumps say the same; Java's has more fields a row.

    4.9 also names the queues of all delay levels, which it makes in memory. Where a writer died
    between the end of a file and the next file, we say that the log ends with the file, Java that
    it ends with the last record.
    """
    assert javas["unreadable"] == javas["foreign"] == []
    assert ours["minPhyOffset"] == javas["minPhyOffset"]
    our_end, java_end = ours["maxPhyOffset"], javas["maxPhyOffset"]
    if our_end % ours["logFileSize"]:
        assert our_end == java_end
    else:
        assert java_end <= our_end < java_end + ours["logFileSize"]
    queues = [row for row in javas["queues"] if row["maxOffset"] or row["topic"] != SCHEDULE_TOPIC]
    for our_rows, java_rows in ((ours["queues"], queues), (ours["messages"], javas["messages"])):
        assert [_place(row) for row in our_rows] == [_place(row) for row in java_rows]
        for our, java in zip(our_rows, java_rows, strict=True):
            assert our == _hosts_unified({key: java[key] for key in our})


def offset_by_time(view: StoreView, questions: Iterable[Row], *, version: str) -> list[Row]:
    """Answer as `OpenStore.offset_by_time` of the release `version`."""

    def offset(row: Row, boundary: Boundary) -> int:
        place = row["topic"], row["queueId"], row["timestamp"]
        return view.offset_in_queue_by_time(*place, boundary)

    if version.startswith("4.9"):
        return [{**row, "offset": offset(row, Boundary.NEAREST49)} for row in questions]
    return [
        {
            **row,
            "offset": offset(row, Boundary.LOWER),
            "offsetUpper": offset(row, Boundary.UPPER),
        }
        for row in questions
    ]


def query_by_key(view: StoreView, questions: Iterable[Row]) -> list[Row]:
    """Answer as `OpenStore.query_by_key`."""
    rows = []
    for row in questions:
        found = view.query_message(
            row["topic"], row["key"], row["maxNum"], row["begin"], row["end"]
        )
        rows.append(
            {
                **row,
                "commitLogOffsets": [message.commitlog_offset for message in found.messages],
                "indexLastUpdateTimestamp": found.index_last_update_timestamp,
                "indexLastUpdatePhyoffset": found.index_last_update_phyoffset,
                "indexPhyOffsets": found.index_offsets,
            }
        )
    return rows


def time_questions(dumped: Row, *, a_queue: int = 12) -> list[Row]:
    """Ask for times before, at, between and after the messages of each queue."""
    times: dict[tuple[str, int], list[int]] = {}
    for row in dumped["messages"]:
        times.setdefault((row["topic"], row["queueId"]), []).append(row["storeTimestamp"])
    rows = []
    for (topic, queue_id), stored in times.items():
        some = {*stored[:: max(1, len(stored) // a_queue)], stored[0], stored[-1]}
        asked = {0, stored[0] - 1000, stored[-1] + 1000, stored[-1] + 10**9}
        asked |= {time + step for time in some for step in (-1, 0, 1)}
        rows += [{"topic": topic, "queueId": queue_id, "timestamp": time} for time in sorted(asked)]
    return rows


def key_questions(dumped: Row, *, most: int = 600) -> list[Row]:
    """Ask for keys of each topic: all of it, few, and within times; and for keys of none.

    For each key, unless that would be more than `most` keys.
    """
    keys: dict[tuple[str, str], list[int]] = {}
    for row in dumped["messages"]:
        properties = row["properties"] or {}
        names = [properties.get("UNIQ_KEY", ""), *properties.get("KEYS", "").split()]
        for key in filter(None, names):
            keys.setdefault((row["topic"], key), []).append(row["storeTimestamp"])
    rows = []
    for (topic, key), times in list(keys.items())[:: len(keys) // most + 1]:
        ranges = [(32, 0, 2**63 - 1)]
        if len(times) > 1:
            middle = times[len(times) // 2]
            ranges += [(2, 0, 2**63 - 1), (64, middle, 2**63 - 1), (64, times[0], middle)]
        rows += [
            {"topic": topic, "key": key, "maxNum": max_num, "begin": begin, "end": end}
            for max_num, begin, end in ranges
        ]
    for topic in {topic for topic, _ in keys}:
        rows.append(
            {"topic": topic, "key": "no such key", "maxNum": 32, "begin": 0, "end": 2**63 - 1}
        )
    return rows


def raw_record(root: Path, file_size: int, offset: int, size: int) -> bytes:
    """Read a record's bytes from the log."""
    first = offset - offset % file_size
    with (root / COMMITLOG / file_name(first)).open("rb") as file:
        file.seek(offset - first)
        return file.read(size)


def _row(view: StoreView, message: MessageExt) -> Row:
    unit = view.unit(message.topic, message.queue_id, message.queue_offset)
    assert unit is not None
    assert unit[:2] == (message.commitlog_offset, message.store_size)
    file_size = view.config.mapped_file_size_commit_log
    record = raw_record(view.root, file_size, message.commitlog_offset, message.store_size)
    row: dict[str, Any] = {
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.commitlog_offset,
        "storeSize": message.store_size,
        "bodyCRC": message.body_crc,
        "sysFlag": message.sys_flag,
        "flag": message.flag,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "properties": message.properties or None,
        "bodyLength": len(message.body),
        "bodySha256": hashlib.sha256(message.body).hexdigest(),
        "offsetMsgId": message.offset_msg_id,
        "magic": {1: MESSAGE_MAGIC_V1, 2: MESSAGE_MAGIC_V2}[message.version],
        "storedBodyLength": len(message.stored_body),
        "recordSha256": hashlib.sha256(record).hexdigest(),
        "tagsCode": unit[2],
    }
    return row


def _place(row: Row) -> tuple[str, int, int | None]:
    return row["topic"], row["queueId"], row.get("queueOffset", row.get("maxOffset"))


def _hosts_unified(row: Row) -> Row:
    """Write IPv6 hosts as we do: Java does not shorten them."""
    for name in ("bornHost", "storeHost"):
        if name in row and row[name].startswith("["):
            address, _, port = row[name].rpartition(":")
            row[name] = f"[{ip_address(address[1:-1])}]:{port}"
    return row
