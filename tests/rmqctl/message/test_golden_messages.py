"""On each store of a real broker, ``message get`` and ``query`` give what RocketMQ says."""

import hashlib
import json
import shutil
from collections import defaultdict
from typing import Any

import pytest

from tests.support import golden, golden_samples
from tests.support.cli import run
from tests.support.copies import copy_store

FOREVER = (1 << 63) - 1
Rows = list[dict[str, Any]]


def rows_of(name: str) -> Rows:
    """What the manifest says of whole messages, each once."""
    rows = {row["commitLogOffset"]: row for row in golden.manifest(name).get("messages", ())}
    return [rows[offset] for offset in sorted(rows)]


def call(name: str, *args: object) -> Rows:
    result = run("message", *args, "-S", golden.store(name), "-o", "jsonl")
    assert result.code == 0, (args, result.err)
    return [json.loads(line) for line in result.lines]


def some(rows: Rows, count: int) -> Rows:
    return rows[:: max(1, len(rows) // count)]


def assert_same(shown: dict[str, Any], row: dict[str, Any]) -> None:
    """The fields that the manifest has; stores made from another one have only some."""
    names = {
        "topic": "topic",
        "queueId": "queue_id",
        "queueOffset": "queue_offset",
        "commitLogOffset": "commitlog_offset",
        "storeSize": "store_size",
        "bodyCRC": "body_crc",
        "sysFlag": "sys_flag",
        "flag": "flag",
        "bornTimestamp": "born_timestamp",
        "storeTimestamp": "store_timestamp",
        "reconsumeTimes": "reconsume_times",
        "preparedTransactionOffset": "prepared_transaction_offset",
        "offsetMsgId": "offset_msg_id",
        "bodyLength": "body_size",
    }
    present = {theirs: ours for theirs, ours in names.items() if theirs in row}
    assert {ours: shown[ours] for ours in present.values()} == {
        ours: row[theirs] for theirs, ours in present.items()
    }
    if "properties" in row:
        assert shown["properties"] == (row["properties"] or {})
    if "bodySha256" in row and shown["body"] is not None:
        assert hashlib.sha256(shown["body"].encode()).hexdigest() == row["bodySha256"]


@pytest.mark.slow
@pytest.mark.feature(27, 28, 30)
@golden_samples.A_FEW
def test_get_by_place_offset_id_and_unique_id(name):
    rows = rows_of(name)
    for row in some(rows, 8):
        place = ("-t", row["topic"], "-Q", row["queueId"], "-O", row["queueOffset"])
        assert_same(call(name, "get", *place)[0], row)
        if row.get("offsetMsgId"):
            assert_same(call(name, "get", row["offsetMsgId"])[0], row)
        unique = (row.get("properties") or {}).get("UNIQ_KEY")
        if unique:
            found = {shown["commitlog_offset"]: shown for shown in call(name, "get", unique)}
            assert_same(found[row["commitLogOffset"]], row)
            assert set(found) >= {
                each["commitLogOffset"]
                for each in rows
                if (each.get("properties") or {}).get("UNIQ_KEY") == unique
            }


def carriers_of(rows: Rows) -> dict[tuple[str, str], dict[int, int]]:
    """Topic and key -> log offset -> store time of the messages that carry the key."""
    carriers: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for row in rows:
        properties = row.get("properties") or {}
        for key in [properties.get("UNIQ_KEY"), *properties.get("KEYS", "").split(" ")]:
            if key:
                carriers[row["topic"], key][row["commitLogOffset"]] = row["storeTimestamp"]
    return carriers


@pytest.mark.slow
@pytest.mark.feature(29, 35)
@golden_samples.A_FEW
def test_query_by_key(name):
    """Java's answers are capped and may be of another key with the same hash: ours are neither.

    Stores that were damaged say less of their messages, so it is taken from the undamaged one.
    """
    facts = golden.manifest(name)["facts"]
    rows = rows_of(facts.get("basedOn", name))
    here = {row["commitLogOffset"] for row in rows_of(name)}
    carriers = carriers_of(rows)
    asked = 0
    for answer in some(golden.manifest(name).get("queryByKey", []), 30):
        topic, key = answer["topic"], answer["key"]
        # Some were asked for a range that ends before it begins, which we refuse.
        begin, end = sorted((answer["begin"], answer["end"]))
        args = ["query", "-t", topic, f"--key={key}"]
        if begin:
            args += ["--from", begin]
        if end < FOREVER:
            args += ["--to", end + 1]
        result = run("message", *args, "-S", golden.store(name), "-o", "jsonl")
        if result.code == 3:  # a topic that the store does not have
            assert not answer.get("commitLogOffsets")
            continue
        lost = name == "torn-clean-bad-crc-last-4.9"  # which may have had the key
        assert result.code == (8 if lost else 0), (args, result.err)
        found = [json.loads(line)["commitlog_offset"] for line in result.lines]
        known = carriers[topic, key]
        in_time = {offset for offset, time in known.items() if begin <= time <= end}
        assert found == sorted(found)
        assert in_time & here <= set(found) <= in_time
        # Theirs go by whole seconds: one that is not among ours lies at an end of the range.
        for offset in set(answer.get("commitLogOffsets", ())) & set(known) - in_time:
            assert min(abs(known[offset] - begin), abs(known[offset] - end)) < 1000
        asked += 1
    assert asked


@pytest.mark.slow
@pytest.mark.parametrize("name", ["basic-4.9", "basic-5.3", "small-files-4.9", "cqext-4.9"])
@pytest.mark.feature(31)
def test_query_by_tag(name):
    rows = rows_of(name)
    tags = {(row["topic"], (row["properties"] or {}).get("TAGS")) for row in rows}
    for topic, tag in sorted(tags, key=repr)[::3]:
        if tag and "|" not in tag:
            found = [
                row["commitlog_offset"] for row in call(name, "query", "-t", topic, "--tag", tag)
            ]
            assert found == [
                row["commitLogOffset"]
                for row in rows
                if row["topic"] == topic and (row["properties"] or {}).get("TAGS") == tag
            ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "based_on", "by_index"),
    [("basic-4.9", "basic-4.9", 0), ("torn-no-index-4.9", "unclean-4.9", 1)],
)
def test_the_index_alone_gives_what_it_leads_to(tmp_path, name, based_on, by_index):
    """A store whose index is gone has nothing there, and everything in the log.

    One that was not closed cleanly has what a broker would put there when it recovers the store.
    """
    root = golden.extract(name, tmp_path)
    assert (root / "abort").exists() == bool(by_index)
    shutil.rmtree(root / "index", ignore_errors=True)
    row = golden.manifest(based_on)["messages"][100]
    key = row["properties"]["UNIQ_KEY"]
    for way, count in ((["--index"], by_index), ([], 1), (["--scan"], 1)):
        found = run("message", "query", "-k", key, *way, "-S", root, "-o", "json").json()
        assert [shown["commitlog_offset"] for shown in found] == [row["commitLogOffset"]] * count


@pytest.mark.slow
def test_an_index_that_says_it_covers_too_much_is_not_believed(tmp_path):
    root = golden.extract("basic-4.9", tmp_path)
    row = golden.manifest("basic-4.9")["messages"][100]
    for path in root.glob("index/*"):
        with path.open("r+b") as file:
            file.seek(24)
            file.write((1 << 50).to_bytes(8, "big"))  # endPhyOffset
            file.seek(40)
            file.write(bytes(4 * 5_000_000))  # all slots
    for what in (["get", row["offsetMsgId"]], ["query", "-k", row["properties"]["UNIQ_KEY"]]):
        result = run("message", *what, "-S", root, "-o", "jsonl")
        assert json.loads(result.lines[0])["commitlog_offset"] == row["commitLogOffset"]


@pytest.mark.slow
@pytest.mark.feature(29, 35)
def test_a_key_of_more_than_64_messages_is_found_in_all_of_them(store):
    lines = b"\n".join(b"%d" % number for number in range(300))
    assert run("produce", "t", "-k", "hot", "-Q", 0, stdin=lines).code == 0
    for way in ([], ["--index"], ["--scan"], ["-t", "t"]):
        result = run("message", "query", "-k", "hot", *way, "-o", "jsonl", "--columns", "body")
        assert [json.loads(line)["body"] for line in result.lines] == [str(n) for n in range(300)]


def test_keys_with_one_hash_are_told_apart(store):
    run("produce", "t", "-k", "Aa", stdin=b"1\n")
    run("produce", "t", "-k", "BB", stdin=b"2\n")
    result = run("message", "query", "-k", "BB", "-o", "jsonl")
    assert [json.loads(line)["body"] for line in result.lines] == ["2"]


@pytest.mark.slow
def test_filters_hold_together_with_the_key(store):
    run("produce", "t", "-k", "k", "--tag", "a", "-Q", 0, stdin=b"1\n2\n")
    run("produce", "t", "-k", "k", "--tag", "b", "-Q", 1, stdin=b"3\n")
    run("produce", "u", "-k", "k", "--tag", "b", "-Q", 0, stdin=b"4\n")
    for args, expected in (
        (["-k", "k", "--tag", "b"], ["3", "4"]),
        (["-k", "k", "-t", "t"], ["1", "2", "3"]),
        (["-k", "k", "-Q", "0"], ["1", "2", "4"]),
        (["-k", "k", "--body", "2"], ["2"]),
        (["--tag", "b"], ["3", "4"]),
        (["--tag", "a || b", "-t", "t", "--regex", "[13]"], ["1", "3"]),
        (["-k", "k", "--to", "-1h"], []),
    ):
        result = run("message", "query", *args, "-o", "jsonl")
        assert [json.loads(line)["body"] for line in result.lines] == expected, args


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        ([], 2, "give --key or --tag"),
        (["--tag", "*"], 2, "--tag: * matches every message"),
        (["--key", ""], 2, "--key is empty"),
        (["--key", "k", "--index", "--scan"], 2, "exclude each other"),
        (["--tag", "t", "--scan"], 2, "--index and --scan need --key"),
        (["--key", "k", "-t", "nowhere"], 3, "topic nowhere does not exist"),
    ],
)
def test_mistakes_are_one_sentence(store, args, code, sentence):
    result = run("message", "query", *args)
    assert (result.code, result.err.count("\n"), result.raw) == (code, 1, b"")
    assert sentence in result.err


def test_a_damaged_message_with_the_key_is_counted(store, tmp_path):

    run("produce", "t", "-k", "k", "-Q", 0, stdin=b"aaaa\nbbbb\n")
    copy = tmp_path / "copy"
    copy_store(store, copy)
    log = copy / "commitlog" / f"{0:020d}"
    with log.open("r+b") as file:
        place = file.read(4096).find(b"aaaa")
        file.seek(place)
        file.write(b"X")
    result = run("message", "query", "-k", "k", "-S", copy, "-o", "jsonl")
    assert [json.loads(line)["body"] for line in result.lines] == ["bbbb"]
    assert "1 damaged record may have the key" in result.err
