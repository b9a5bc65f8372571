import hashlib
import json
from typing import Any

import pytest

from storage.format.message_id import parse_offset_msg_id
from tests.support import golden
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.hand_made import HandMade

FIELDS = [
    *("topic", "queue_id", "queue_offset", "tags", "keys", "body", "body_base64", "msg_id"),
    *(
        "store_timestamp",
        "born_timestamp",
        "reconsume_times",
        "properties",
        "offset_msg_id",
        "commitlog_offset",
    ),
    *("store_size", "body_size", "body_crc", "flag", "sys_flag", "born_host", "store_host"),
    "prepared_transaction_offset",
]


def get(*args):
    result = run("message", "get", "-o", "json", *args)
    assert result.code == 0, result.err
    return result.json()


@pytest.fixture
def sent(store):
    """Three messages, and what was said of them."""
    result = run("produce", "t", "-o", "jsonl", "--queue", 1, "-k", "k1", stdin=b"a\nb\nc\n")
    return [json.loads(line) for line in result.lines]


@pytest.mark.feature(27, 28, 30)
def test_a_message_is_found_by_each_of_its_ids_and_by_its_place(sent):
    row = sent[1]
    found = get(row["msg_id"])
    assert list(found) == FIELDS
    assert (found["body"], found["keys"], found["queue_offset"]) == ("b", ["k1"], 1)
    assert get(row["offset_msg_id"]) == found
    assert get(row["msg_id"].lower()) == get(row["offset_msg_id"].lower()) == found
    assert get("-t", "t", "-Q", 1, "-O", 1) == found


@pytest.mark.feature(27, 28, 110)
@pytest.mark.parametrize("name", ["basic-4.9", "basic-5.3", "ipv6-4.9", "small-files-4.9"])
@pytest.mark.slow
def test_golden_messages_are_found_by_both_ids(name):
    rows = [row for row in golden.manifest(name)["messages"] if row.get("offsetMsgId")]
    for row in rows[:: max(1, len(rows) // 7)]:
        found = get(row["offsetMsgId"], "-S", golden.store(name))
        assert found["commitlog_offset"] == row["commitLogOffset"]
        assert found["body_crc"] == row["bodyCRC"]
        unique = (row.get("properties") or {}).get("UNIQ_KEY")
        if unique:
            several = get(unique, "-S", golden.store(name))
            several = several if isinstance(several, list) else [several]
            assert row["commitLogOffset"] in [each["commitlog_offset"] for each in several]


def test_records_that_share_an_id_are_an_array_in_log_order():
    """Retries keep their unique id."""
    messages = golden.manifest("retry-dlq-4.9")["messages"]
    places: dict[Any, Any] = {}
    for row in messages:
        unique = (row.get("properties") or {}).get("UNIQ_KEY")
        places.setdefault(unique, set()).add(row["commitLogOffset"])
    unique = max((key for key in places if key), key=lambda key: len(places[key]))
    root = golden.store("retry-dlq-4.9")
    found = get(unique, "-S", root)
    assert [row["commitlog_offset"] for row in found] == sorted(places[unique])
    lines = run("message", "get", unique, "-S", root, "-o", "jsonl").lines
    assert [json.loads(line) for line in lines] == found
    topic = found[0]["topic"]
    alone = get(unique, "-S", root, "-t", topic)
    assert (alone if isinstance(alone, list) else [alone])[0] == found[0]


def test_a_light_queue_gives_the_message_that_was_dispatched_to_it():
    root = golden.store("lmq-4.9")
    queues = run("topic", "queues", "-S", root, "-o", "json", "--where", "count > 0").json()
    light = next(row for row in queues if row["topic"].startswith("%LMQ%"))
    found = get("-S", root, "-t", light["topic"], "-Q", 0, "-O", light["min_offset"])
    assert not found["topic"].startswith("%LMQ%")


def test_without_an_index_the_log_is_searched(tmp_path):
    root = golden.extract("torn-no-index-4.9", tmp_path)
    row = golden.manifest("unclean-4.9")["messages"][100]
    assert not list(root.glob("index/*"))
    found = get(row["properties"]["UNIQ_KEY"], "-S", root)
    assert found["commitlog_offset"] == row["commitLogOffset"]


def test_what_is_behind_the_index_is_searched_too(sent, store, tmp_path):
    copy = tmp_path / "copy"
    copy_store(store, copy)
    for path in (copy / "index").iterdir():
        path.unlink()
    assert get(sent[2]["msg_id"], "-S", copy)["body"] == "c"


@pytest.mark.feature(26)
def test_a_body_goes_into_a_file_as_it_is(store, tmp_path):
    body = bytes(range(256)) * 300
    run("produce", "t", "-D", "", "-Q", 0, stdin=body)
    file = tmp_path / "body"
    result = run("message", "get", "-t", "t", "-Q", 0, "-O", 0, "--save", file)
    assert (result.code, result.raw) == (0, b"")
    assert file.read_bytes() == body
    assert "wrote 76,800 bytes" in result.err
    packed = golden.manifest("basic-4.9")["messages"]
    row = next(row for row in packed if row["sysFlag"] & 1)
    run("message", "get", row["offsetMsgId"], "-S", golden.store("basic-4.9"), "--save", file)
    assert hashlib.sha256(file.read_bytes()).hexdigest() == row["bodySha256"]


def test_a_dry_run_writes_no_body_and_says_what_it_would_write(store, tmp_path):
    run("produce", "t", "-Q", 0, stdin=b"hello\n")
    file = tmp_path / "body"
    result = run("message", "get", "-t", "t", "-Q", 0, "-O", 0, "--save", file, "-n")
    assert (result.code, result.out) == (0, "")
    assert result.err == f"dry run: would write 5 bytes to {file}\n"
    assert not file.exists()


def test_copies_of_a_message_have_one_body(tmp_path):
    retries = golden.manifest("retry-dlq-4.9")["messages"]
    unique = next(
        row["properties"]["UNIQ_KEY"] for row in retries if row["topic"].startswith("%DLQ%")
    )
    root = golden.store("retry-dlq-4.9")
    result = run("message", "get", unique, "-S", root, "--save", tmp_path / "body")
    assert result.code == 0, result.err
    assert (tmp_path / "body").stat().st_size > 0


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        ([], 2, "give either an id, or --topic"),
        (
            ["7F000001000000000000000000000000", "-Q", "1"],
            2,
            "--topic, --queue and --offset need each other",
        ),
        (["-t", "t", "-Q", "1"], 2, "--topic, --queue and --offset need each other"),
        (["nonsense"], 2, "'nonsense' is not a message id"),
        ([""], 2, "the id or key is empty; give the id or a key of a message"),
        (["7F000001000000000000000000000000"], 3, "no message has the id"),
        (["7F00000100000000000000000000000G"], 2, "is not a message id"),
        (["7F000001000000000000000000000000", "-t", "u"], 3, "topic u does not exist"),
        (["-t", "t", "-Q", "1", "-O", "3"], 3, "has no offset 3: it has offsets 0 to 2"),
        (["-t", "t", "-Q", "0", "-O", "0"], 3, "has no offset 0: it is empty"),
        (["-t", "t", "-Q", "9", "-O", "0"], 3, "topic t has no queue 9 in "),
        (["-t", "t", "-Q", "-1", "-O", "0"], 2, "--queue: -1 is not a queue number"),
        (["-t", "t", "-Q", "1", "-O", "x"], 2, "is not a valid int"),
        (["-t", "a/b", "-Q", "1", "-O", "0"], 2, "topic 'a/b' has characters other than"),
    ],
)
def test_what_can_not_be_found_is_one_sentence(sent, args, code, sentence):
    result = run("message", "get", *args)
    assert (result.code, result.err.count("\n"), result.raw) == (code, 1, b"")
    assert sentence in result.err


def test_a_damaged_message_is_named_and_not_shown(sent, store, tmp_path):
    copy = tmp_path / "copy"
    copy_store(store, copy)
    _, position = parse_offset_msg_id(sent[1]["offset_msg_id"])
    with (copy / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(position + 88)
        file.write(b"X")
    for args in (
        [sent[1]["msg_id"]],
        [sent[1]["offset_msg_id"]],
        ["-t", "t", "-Q", "1", "-O", "1"],
    ):
        result = run("message", "get", *args, "-S", copy)
        assert (result.code, result.err.count("\n")) == (4, 1), result.err
        assert "cannot be read" in result.err
    assert get("-S", copy, "-t", "t", "-Q", 1, "-O", 2)["body"] == "c"


def test_a_limit_of_a_query_says_what_was_damaged_before_it(tmp_path):
    made = HandMade()
    for _ in range(9):
        made.put("t", 0, b"body", tags="a")
    root = made.write(tmp_path / "s")
    letter = made.messages[1]
    folder = root / "commitlog"
    path = max(path for path in folder.iterdir() if int(path.name) <= letter.commitlog_offset)
    data = bytearray(path.read_bytes())
    data[data.index(b"body", letter.commitlog_offset - int(path.name))] ^= 0x20
    path.write_bytes(data)
    for limit, code in ((1, 0), (5, 8), (8, 8)):
        result = run("message", "query", "--tag", "a", "--limit", limit, "-S", root, "-o", "jsonl")
        assert (result.code, len(result.lines)) == (code, limit), result.err
        assert ("left out 1 damaged records" in result.err) is (code == 8)
