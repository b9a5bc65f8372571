import json
import os
import shutil

import pytest
import yaml

from storage.config import SMALL_STORE
from storage.store import MessageStore
from tests.support import golden
from tests.support.cli import run
from tests.support.copies import copy_store

LOG = f"commitlog/{0:020d}"


def dump(*args, code=0):
    result = run("store", "dump", "-o", "json", *args)
    assert result.code == code, result.err
    return result.json()


@pytest.fixture
def sent(store):
    """Three messages of one topic."""
    run("produce", "t", "--queue", 0, "-k", "k1", "--tag", "a", stdin=b"one\ntwo\nthree\n")
    return store


@pytest.fixture
def damaged(sent, tmp_path):
    """A copy of it to damage, and a function that writes bytes into its log."""
    root = tmp_path / "damaged"
    copy_store(sent, root)

    def write(position, data):
        with (root / LOG).open("r+b") as file:
            file.seek(position)
            file.write(data)
        return dump(root / LOG)

    return root, write


def test_a_log_file_is_its_records_and_what_is_behind_them(sent):
    rows = dump(sent / LOG)
    assert [row["kind"] for row in rows] == ["MESSAGE"] * 3 + ["EMPTY"]
    assert [row["body"] for row in rows] == ["one", "two", "three", None]
    assert sum(row["size"] for row in rows) == (sent / LOG).stat().st_size
    assert rows[1]["position"] == rows[0]["size"] == rows[1]["physical_offset"]
    assert (rows[2]["topic"], rows[2]["queue_offset"], rows[2]["tags"]) == ("t", 2, "a")
    assert all(row["problem"] is None for row in rows)


@pytest.mark.slow
def test_a_file_is_named_from_the_store_or_from_anywhere(sent, tmp_path):
    assert dump(LOG) == dump(sent / LOG)
    shutil.copy(sent / LOG, tmp_path / "mislaid")
    assert dump(tmp_path / "mislaid") == dump(LOG)


@pytest.mark.feature(116)
def test_a_position_is_one_record_in_full(sent):
    first, second, *_ = dump(LOG)
    row = dump(second["position"])
    assert {**row} == second
    plain = run("store", "dump", second["position"]).out
    assert "body\ttwo\n" in plain
    assert "properties.KEYS\tk1\n" in plain
    assert first["msg_id"] not in plain


def test_a_position_inside_of_a_record_or_behind_the_log_is_told(sent):
    rows = dump(LOG)
    result = run("store", "dump", 100)
    assert (result.code, result.err.count("\n")) == (3, 1)
    assert f"it is within {rows[0]['size']} bytes (MESSAGE) that begin at 0" in result.err
    for position in (rows[3]["position"], 1 << 40):
        result = run("store", "dump", position)
        assert result.code == 3
        assert f"spans 0 to {rows[3]['position']}" in result.err


def test_a_body_that_fails_its_crc_is_shown_with_the_reason(damaged):
    root, write = damaged
    rows = write(88, b"X")
    assert [row["kind"] for row in rows] == ["DAMAGED", "MESSAGE", "MESSAGE", "EMPTY"]
    assert (rows[0]["problem"], rows[0]["body"]) == ("the CRC of the body does not match", "Xne")
    assert dump(0, "-S", root, code=4) == rows[0]


def test_bytes_that_are_no_record_are_passed_and_what_can_be_told_is_told(damaged):
    _, write = damaged
    size = dump(LOG)[0]["size"]
    rows = write(0, b"\x00\x00\x00\x07")  # the size
    assert [row["kind"] for row in rows] == ["DAMAGED", "MESSAGE", "MESSAGE", "EMPTY"]
    assert (rows[0]["queue_offset"], rows[0]["size"], rows[0]["topic"]) == (0, size, None)
    rows = write(4, b"\xff\xff\xff\xff")  # the magic
    assert [row["kind"] for row in rows] == ["LOST", "MESSAGE", "MESSAGE", "EMPTY"]
    assert "unknown magic code 0xffffffff" in rows[0]["problem"]


def test_a_record_in_the_wrong_place_is_damage(damaged):
    _, write = damaged
    (row, *_) = write(28, (7).to_bytes(8, "big"))
    assert (row["kind"], row["problem"]) == ("DAMAGED", "its own position field is 7")


def test_where_picks_the_problems(damaged):
    root, write = damaged
    write(88, b"X")
    assert [row["position"] for row in dump(root / LOG, "--where", "problem != null")] == [0]


@pytest.mark.slow
@pytest.mark.feature(116, 110)
@pytest.mark.parametrize("name", ["small-files-4.9", "torn-half-record-4.9", "ipv6-4.9"])
def test_each_byte_of_a_golden_log_is_in_one_piece(name):
    root = golden.store(name)
    expected = {row["commitLogOffset"] for row in golden.manifest(name)["messages"]}
    found = set()
    for path in sorted((root / "commitlog").iterdir()):
        rows = dump(path)
        position = int(path.name)
        for row in rows:
            assert row["position"] == position
            position += row["size"]
            if row["kind"] == "MESSAGE":
                found.add(row["position"])
        assert position == int(path.name) + path.stat().st_size
    assert expected <= found


def test_a_queue_file_is_its_units(sent):
    rows = dump(f"consumequeue/t/0/{0:020d}")
    assert [row["kind"] for row in rows] == ["UNIT"] * 3 + ["EMPTY"]
    records = dump(LOG)
    assert [row["commitlog_offset"] for row in rows[:3]] == [r["position"] for r in records[:3]]
    assert [row["queue_offset"] for row in rows] == [0, 1, 2, 3]
    units = SMALL_STORE.mapped_file_size_consume_queue // 20
    assert (rows[3]["units"], rows[3]["position"]) == (units - 3, 60)


def test_damaged_and_cut_units_are_shown(sent, tmp_path):
    path = tmp_path / f"{600000:020d}"
    unit = (sent / f"consumequeue/t/0/{0:020d}").read_bytes()[:20]
    filler = b"\x00" * 8 + b"\x7f\xff\xff\xff" + b"\x00" * 8
    (tmp_path / "consumequeue/t/0").mkdir(parents=True)
    path = tmp_path / "consumequeue/t/0" / path.name
    path.write_bytes(filler * 2 + unit + b"\xff" * 20 + b"\x00" * 7)
    rows = dump(path)
    assert [(row["kind"], row["queue_offset"]) for row in rows] == [
        ("FILLER", 30000),
        ("UNIT", 30002),
        ("DAMAGED", 30003),
        ("DAMAGED", 30004),
    ]
    assert rows[0]["units"] == 2
    assert rows[3]["problem"] == "the file ends after 7 bytes"


def test_an_index_file_is_its_head_and_its_entries(sent):
    (path,) = (sent / "index").iterdir()
    head = dump(path)
    assert (head["index_count"], head["max_hash_slot_num"], head["problem"]) == (7, 50_000, None)
    assert [entry["number"] for entry in head["entries"]] == [1, 2, 3, 4, 5, 6]
    positions = [row["position"] for row in dump(LOG)[:3]]
    assert [entry["commitlog_offset"] for entry in head["entries"][::2]] == positions
    keyed = [entry for entry in head["entries"] if entry["number"] % 2 == 0]
    assert [entry["previous"] for entry in keyed] == [0, 2, 4]
    lines = run("store", "dump", path, "-o", "jsonl").lines
    assert [json.loads(line) for line in lines] == head["entries"]
    plain = run("store", "dump", path).lines
    assert plain[9:11] == [
        "",
        "number\tslot\tkey_hash\tcommitlog_offset\tstore_timestamp\tprevious\tproblem",
    ]


@pytest.mark.slow
def test_a_damaged_index_says_what_is_wrong(sent, tmp_path):
    (path,) = (sent / "index").iterdir()
    (tmp_path / "index").mkdir()
    copy = tmp_path / "index" / path.name
    shutil.copy(path, copy)
    with copy.open("r+b") as file:
        file.seek(36)
        file.write((1 << 30).to_bytes(4, "big"))
    assert "counts 1073741824 entries" in (dump(copy)["problem"] or "")
    copy.write_bytes(b"\x00" * 10)
    assert dump(copy)["problem"] == "the file has 10 bytes, less than its head of 40"


@pytest.mark.slow
def test_small_files_are_decoded(sent):
    assert dump("checkpoint")["physic_msg_timestamp"] == dump(LOG)[2]["store_timestamp"]
    assert "t" in dump("config/topics.json")["topicConfigTable"]
    assert dump("rmqctl/store.json")["max_index_num"] == 200_000
    assert run("store", "dump", "lock").out == "lock"
    run("topic", "create", "u")
    run("consume", "t", "-g", "g", "-e")
    (journal,) = (sent / "rmqctl/journal").iterdir()
    assert json.loads(run("store", "dump", journal).out)["topic"] == "u"
    lines = [*map(json.loads, run("store", "dump", "rmqctl/offsets.log").out.splitlines())]
    rows = [row for line in lines if "0" in (row := line.get("queues", {}).get("t@g", {}))]
    assert (lines[0]["version"], rows[-1]["0"]) == (2, [0, 3])
    assert lines[-1] == {"n": len(lines), "exported": True}
    assert dump("rmqctl/offsets.json") == {"version": 2, "progress": "offsets.log"}
    assert dump("config/consumerOffset.json")["offsetTable"]["t@g"]["0"] == 3


def test_the_shared_page_is_its_words_and_queues(sent):
    page = dump("rmqctl/shared")
    end = dump(LOG)[3]["position"]
    assert (page["words"]["log_end"], page["problem"]) == (end, None)
    assert page["queues"] == [
        {"slot": 0, "topic": "t", "queue_id": 0, "next_offset": 3, "synced_offset": 3}
    ]


def test_damage_of_small_files_is_one_sentence(tmp_path):
    root = tmp_path / "s"
    MessageStore.create(root, SMALL_STORE)
    (root / "config/topics.json").write_text('{"a":')
    (root / "rmqctl/offsets.json").write_text('{"crc":"00000000","entry":{}}')
    (root / "rmqctl/shared").write_bytes(b"short")
    for name in ("config/topics.json", "rmqctl/offsets.json", "rmqctl/shared"):
        result = run("store", "dump", root / name)
        assert (result.code, result.err.count("\n")) == (4, 1), result.err
        assert "is damaged" in result.err
    (root / "checkpoint").write_bytes(b"\x00" * 9)
    assert "the file has 9 of 4096 bytes" in dump(root / "checkpoint")["problem"]
    (root / LOG).write_bytes(b"")
    assert run("store", "dump", root / LOG).err == f"{root / LOG} is empty\n"


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        ("nope", 3, "there is no file nope, neither in "),
        ("commitlog", 3, "is a folder; name a file in it"),
        ("/etc/passwd", 3, "is not a file of a RocketMQ store"),
    ],
)
def test_what_is_no_file_of_a_store_is_one_sentence(store, name, code, sentence):
    result = run("store", "dump", name)
    assert (result.code, result.err.count("\n")) == (code, 1)
    assert sentence in result.err


@pytest.mark.parametrize("name", ["torn-half-record-5.3", "cqext-4.9", "torn-cq-past-end-4.9"])
@pytest.mark.slow
def test_every_file_of_a_golden_store_is_decoded_or_named(name):
    root = golden.store(name)
    for path in root.rglob("*"):
        if path.is_file():
            result = run("store", "dump", path, "-o", "jsonl")
            known = result.code == 0 or "is a file of RocketMQ 5.x only" in result.err
            assert known or "is not a file of" in result.err, (path, result.err)
            assert "internal error" not in result.err


@pytest.mark.parametrize("how", ["huge", "pipe"])
def test_a_list_of_queues_that_cannot_be_one_is_not_read(sent, tmp_path, how):
    root = tmp_path / "damaged"
    copy_store(sent, root)
    path = root / "rmqctl" / "queues"
    if how == "huge":
        os.truncate(path, 400 << 20)
    else:
        path.unlink()
        os.mkfifo(path)
    result = run("store", "dump", path)
    assert (result.code, result.out) == (4, "")
    assert str(path) in result.err


@pytest.mark.parametrize("form", ["csv", "tsv", "table", "wide", "plain", "md"])
def test_a_file_of_json_has_no_rows(sent, form):
    result = run("store", "dump", "config/topics.json", "-o", form)
    assert (result.code, result.out) == (2, "")
    assert f"--output {form} is for rows" in result.err
    assert "take json, jsonl, yaml" in result.err
    assert "topicConfigTable" in run("store", "dump", "config/topics.json").out
    by_setting = run("store", "dump", "config/topics.json", env={"RMQCTL_OUTPUT": form})
    assert "topicConfigTable" in by_setting.json(), "a setting is for other files"


@pytest.mark.parametrize(
    "option", [("--where", "problem != null"), ("--columns", "problem"), ("--limit", "1")]
)
@pytest.mark.parametrize("file", ["config/topics.json", "rmqctl/offsets.log", "lock"])
def test_a_file_without_rows_takes_no_option_of_rows(sent, file, option):
    run("consume", "t", "-g", "g", "-e")
    result = run("store", "dump", file, *option)
    assert (result.code, result.out) == (2, "")
    assert f"{option[0]} is for rows, and {sent / file} has none" in result.err


def test_lines_of_json_are_given_in_the_form_that_was_asked_for(sent):
    run("consume", "t", "-g", "g", "-e")
    lines = [json.loads(line) for line in run("store", "dump", "rmqctl/offsets.log").lines]
    assert run("store", "dump", "rmqctl/offsets.log", "-o", "json").json() == lines
    assert yaml.safe_load(run("store", "dump", "rmqctl/offsets.log", "-o", "yaml").out) == lines
    assert run("store", "dump", "rmqctl/offsets.log", "-o", "csv").code == 2
