"""What is exported can be imported, and is the same; what is masked is gone."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.message.exchange.masking import masked, parse_rules, unmatched
from storage.config import SMALL_STORE
from storage.format.message import RESERVED_PROPERTIES, MessageExt
from storage.readonly import StoreView
from tests.support import golden
from tests.support.cli import call, run
from tests.support.examples import examples

FORMS = ["jsonl", "csv", "raw", "parquet"]


def own(message: Any) -> tuple[Any, ...]:
    """What of a message is the user's."""
    properties = message.properties
    user = {name: value for name, value in properties.items() if name not in RESERVED_PROPERTIES}
    return (
        message.topic,
        message.queue_id,
        message.body,
        properties.get("KEYS"),
        properties.get("TAGS"),
        message.flag,
        user,
    )


def messages_of(root: Path) -> list[tuple[Any, ...]]:
    with StoreView.open(root) as view:
        found: list[tuple[Any, ...]] = []
        for topic, queue_id in view.queues():
            low, high = view.queue_bounds(topic, queue_id)
            for offset in range(low, high):
                found += map(own, view.get_message(topic, queue_id, offset, 1).messages)
    return found


NASTY = [
    (b"plain", {}, 0),
    (b"", {"color": "red"}, 1),
    (b"\xff\xfe not \x00 UTF-8", {"KEYS": "k1 k2"}, -5),
    (b'"quoted", with\r\nlines and\ttabs\\', {"KEYS": " k1  k2 ", "TAGS": "TagA"}, 1 << 30),
    (
        "\u6d88\u606f na\u00efve \U0001f600".encode(),
        {"\u5730\u533a": "\u5317\u4eac", "emoji": "\U0001f600\u200d", "TAGS": "\u6807\u7b7e"},
        0,
    ),
    (b"=1+1", {"formula": "=1+1", "quote": 'a "b", c', "lines": "a\nb\r\nc", "tab": "\t"}, 0),
    (b"\x1b[31mred", {"esc": "\x1b[0m", "one": "x y"}, 0),
    (b"x" * 300_000, {"long": "y" * 20_000}, 0),
    (b"\xc3" * 200_000, {}, 0),
]


def fill(root: Path, messages: list[tuple[bytes, dict[str, str], int]], topic: str = "t") -> Path:
    create_store(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        for number, (body, properties, flag) in enumerate(messages):
            shared = dict(properties)
            keys = [shared.pop("KEYS")] if "KEYS" in shared else None
            broker.send_column(topic, [body], number % 3, properties=shared, keys=keys, flag=flag)
    return root


@pytest.mark.feature(123, 124)
@pytest.mark.parametrize("form", FORMS)
def test_a_round_trip_changes_nothing(tmp_path, form):
    source = fill(tmp_path / "a", NASTY)
    target = fill(tmp_path / "b", [])
    file = tmp_path / f"out.{form}"
    result = run("message", "export", "-S", source, "--save", file)
    assert (result.code, result.raw) == (0, b""), result.err
    assert f"exported {len(NASTY)} messages to {file}" in result.err
    result = run("message", "import", file, "-S", target, "--allow-empty")
    assert (result.code, result.raw) == (0, b""), result.err
    assert messages_of(target) == messages_of(source)
    assert len(messages_of(target)) == len(NASTY)


texts = st.text(st.characters(exclude_characters="\x00\x01\x02", exclude_categories=["Cs"]))


@pytest.mark.feature(124)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=40),
            st.dictionaries(
                texts.filter(lambda name: bool(name) and name not in RESERVED_PROPERTIES),
                texts.filter(bool),
                max_size=3,
            ),
            st.integers(-(1 << 31), (1 << 31) - 1),
        ),
        min_size=1,
        max_size=6,
    )
)
@pytest.mark.slow
def test_any_messages_come_back(tmp_path_factory, messages):
    folder = tmp_path_factory.mktemp("s")
    source = fill(folder / "a", messages)
    for form in FORMS:
        target, file = fill(folder / form, []), folder / f"out.{form}"
        assert run("message", "export", "-S", source, "--save", file).code == 0
        result = run("message", "import", file, "-S", target, "--allow-empty")
        assert result.code == 0, result.err
        assert messages_of(target) == messages_of(source)
    shutil.rmtree(folder)  # of each example; pytest removes none before the end


@pytest.mark.feature(123)
def test_csv_is_that_of_the_rfc_and_jsonl_has_the_fields_of_consume(tmp_path):
    source = fill(tmp_path / "a", NASTY)
    text = run("message", "export", "-S", source, "--as", "csv").raw.decode()
    csv.field_size_limit(1 << 20)
    table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    lines = run("message", "export", "-S", source).lines
    rows = [json.loads(line) for line in lines]
    assert text.endswith("\r\n")
    assert len(table) == len(rows) + 1
    for cells, row in zip(table[1:], rows, strict=True):
        shown = dict(zip(table[0], cells, strict=True))
        assert shown["body"] == (row["body"] or "")
        assert json.loads(shown["properties"]) == row["properties"]
        assert int(shown["commitlog_offset"]) == row["commitlog_offset"]
    consumed = run("consume", "t", "-e", "-o", "jsonl", "-S", source).lines
    assert sorted(consumed) == sorted(lines)


@pytest.mark.slow
def test_stores_of_brokers_come_over_whole(tmp_path):
    """Compressed bodies, light queues, retries and dead letters."""
    for name in ("basic-4.9", "lmq-4.9", "retry-dlq-5.3"):
        target = tmp_path / name
        create_store(target, SMALL_STORE)
        exported = run("message", "export", "-S", golden.store(name))
        assert exported.code == 0, exported.err
        result = run(
            "message",
            "import",
            "-",
            "-S",
            target,
            "--topic",
            "all",
            "--allow-empty",
            stdin=exported.raw,
        )
        assert result.code == 0, result.err
        rows = [json.loads(line) for line in exported.lines]
        copies = [json.loads(line) for line in run("message", "export", "-S", target).lines]
        bodies = sorted((row.get("body") or row["body_base64"], row["flag"]) for row in rows)
        assert bodies == sorted(
            (row.get("body") or row["body_base64"], row["flag"]) for row in copies
        )


@pytest.mark.slow
@pytest.mark.feature(123)
def test_topics_filters_and_limits_choose(tmp_path):
    source = tmp_path / "a"
    create_store(source, SMALL_STORE)
    for topic, tag in (("t", "a"), ("t", "b"), ("u", "a"), ("v", "a")):
        body = f"{topic}{tag}\n".encode()
        assert run("produce", topic, "--tag", tag, "-S", source, stdin=body).code == 0
    assert run("produce", "t", "--delay-level", 18, "-S", source, stdin=b"later\n").code == 0

    def bodies(*args: object) -> list[str]:
        result = run("message", "export", "-S", source, *args)
        assert result.code == 0, result.err
        return [json.loads(line)["body"] for line in result.lines]

    assert bodies() == ["ta", "tb", "ua", "va"]
    assert bodies("-t", "t") == ["ta", "tb"]
    assert bodies("-t", "t", "-t", "v") == ["ta", "tb", "va"]
    assert bodies("--tag", "a") == ["ta", "ua", "va"]
    assert bodies("--tag", "a", "--limit", 2) == ["ta", "ua"]
    assert bodies("-t", "SCHEDULE_TOPIC_XXXX") == ["later"]


def test_every_format_of_the_program_shows_what_would_be_exported(tmp_path):
    source = fill(tmp_path / "a", [(b"1", {"TAGS": "a"}, 0), (b"2", {"TAGS": "b"}, 0)])
    args = ("message", "export", "-S", source)
    shown = run(*args, "-o", "json", "--where", "tags = b").json()
    assert [row["body"] for row in shown] == ["2"]
    assert run(*args, "-o", "tsv", "--columns", "body", "--limit", 1).out == "body\n1\n"
    assert [
        row["body"] for row in run(*args, "-o", "json", "--where", "tags = b", "--limit", 1).json()
    ] == ["2"]
    assert run(*args, "-o", "jsonl").raw == run(*args).raw


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--keep-times",)], ids=["anew", "as they were"])
def test_a_new_topic_gets_the_queues_of_its_messages(tmp_path, options):
    source, target = tmp_path / "a", tmp_path / "b"
    for root in (source, target):
        create_store(root, SMALL_STORE)
    assert run("topic", "create", "t", "--queues", 8, "-S", source).code == 0
    for queue in (7, 0, 5):
        run("produce", "t", "--queue", queue, "-q", "-S", source, stdin=b"%d\n" % queue)
    exported = run("message", "export", "-S", source, "--as", "raw").raw
    file = tmp_path / "f.raw"
    file.write_bytes(exported)
    assert run("message", "import", file, *options, "-S", target).code == 0
    assert {(queue, body) for _, queue, body, *_ in messages_of(target)} == {
        (0, b"0"),
        (5, b"5"),
        (7, b"7"),
    }
    assert run("topic", "describe", "t", "-S", target, "-o", "json").json()["write_queues"] == 8


@pytest.mark.slow
@pytest.mark.feature(124)
def test_topics_can_be_mapped_and_queues_keep_their_order(tmp_path):
    source = fill(tmp_path / "a", [(b"%d" % i, {}, 0) for i in range(9)])
    exported = run("message", "export", "-S", source).raw
    target = tmp_path / "b"
    create_store(target, SMALL_STORE)
    assert run("topic", "create", "two", "--queues", 2, "-S", target).code == 0
    args = ("message", "import", "-", "-S", target, "--allow-empty")
    refused = run(*args, "--map-topic", "t=two", stdin=exported)
    assert refused.code in {2, 8}
    assert "was in queue 2, and topic two has 2 queues; 'rmqctl topic alter two --queues 3'" in (
        refused.err
    )
    assert run("topic", "delete", "two", "--confirm", "two", "-y", "-S", target).code == 0
    assert run("topic", "create", "two", "--queues", 2, "-S", target).code == 0
    assert run(*args, "--map-topic", "t=two", "--fold-queues", stdin=exported).code == 0
    bad = exported + b'{"topic":"t","body":"x","queue_id":-5}\n'
    partly = run(*args, "--map-topic", "x=y", "--topic", "r", "--skip-invalid", stdin=bad)
    assert (partly.code, "no message is in topic x\n" in partly.err) == (8, True), partly.err
    assert run("topic", "delete", "r", "--confirm", "r", "-y", "-S", target).code == 0
    result = run(*args, "--map-topic", "x=y", "--topic", "rest", stdin=exported)
    assert (result.code, "--map-topic: no message is in topic x\n" in result.err) == (0, True)
    by_queue: dict[tuple[str, int], list[int]] = {}
    for topic, queue_id, body, *_ in messages_of(target):
        by_queue.setdefault((topic, queue_id), []).append(int(body))
    assert by_queue == {
        ("two", 0): [0, 2, 3, 5, 6, 8],
        ("two", 1): [1, 4, 7],
        ("rest", 0): [0, 3, 6],
        ("rest", 1): [1, 4, 7],
        ("rest", 2): [2, 5, 8],
    }


@pytest.mark.slow
def test_export_and_import_are_a_pipe(tmp_path):
    source, target = fill(tmp_path / "a", NASTY), fill(tmp_path / "b", [])
    for form in ("jsonl", "csv", "raw"):
        exported = call("message", "export", "-S", source, "--as", form)
        result = call(
            "message",
            "import",
            "-",
            "--as",
            form,
            "-S",
            target,
            "--allow-empty",
            stdin=exported.raw,
        )
        assert (exported.code, result.code) == (0, 0), result.err
    assert len(messages_of(target)) == 3 * len(NASTY)


def test_a_line_that_is_none_stops_it_and_is_named(tmp_path):
    target = fill(tmp_path / "b", [])
    lines = b'{"topic":"t","body":"1"}\nnonsense\n{"topic":"t","body":"3"}\n{"body":"4"}\n'
    result = run("message", "import", "-", "-S", target, stdin=lines)
    assert (result.code, result.err.count("\n")) == (8, 1)
    assert "line 2: is not JSON" in result.err
    assert [message[2] for message in messages_of(target)] == [b"1"]
    result = run("message", "import", "-", "-S", target, "--skip-invalid", stdin=lines)
    assert result.code == 8
    assert "left out 2" in result.err
    assert sorted(message[2] for message in messages_of(target)) == [b"1", b"1", b"3"]


@pytest.mark.parametrize("form", ["raw", "parquet"])
def test_a_file_of_another_form_is_refused(tmp_path, form):
    target = fill(tmp_path / "b", [])
    file = tmp_path / "x"
    file.write_bytes(b"this is no such file at all")
    result = run("message", "import", file, "--as", form, "-S", target)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "line 1" in result.err


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("left", [100, 2])
def test_a_raw_file_that_is_cut_is_told_by_the_byte_where_its_last_record_begins(
    left, keeps, tmp_path
):
    source, target = fill(tmp_path / "a", [(b"body 1", {}, 0), (b"body 2", {}, 0)]), tmp_path / "b"
    create_store(target, SMALL_STORE)
    data = run("message", "export", "-S", source, "--as", "raw").raw
    first = int.from_bytes(data[:4], "big")
    result = run(
        *("message", "import", "-", "--as", "raw", "-S", target),
        *(["--keep-times"] if keeps else []),
        stdin=data[: first + left],
    )
    assert result.code == 8, result.err
    said = f"line 2: is cut off, at byte {first} of the file: it has {left} bytes"
    assert said in result.err


def test_a_damaged_record_of_a_raw_file_is_not_stored(tmp_path):
    source, target = fill(tmp_path / "a", [(b"body 1", {}, 0), (b"body 2", {}, 0)]), tmp_path / "b"
    fill(target, [])
    data = bytearray(run("message", "export", "-S", source, "--as", "raw").raw)
    data[data.index(b"body 2")] ^= 1
    result = run("message", "import", "-", "--as", "raw", "-S", target, stdin=bytes(data))
    assert result.code == 8
    assert "line 2: is damaged" in result.err
    assert [message[2] for message in messages_of(target)] == [b"body 1"]


def test_damaged_messages_are_left_out_and_that_is_said(tmp_path):
    root = golden.store("torn-bad-crc-middle-4.9")
    result = run("message", "export", "-S", root, "--save", tmp_path / "x.jsonl")
    assert result.code == 8
    assert "without 1 damaged record;" in result.err
    assert (tmp_path / "x.jsonl").exists()


@pytest.mark.parametrize("shape", [[], ["--columns", "body"], ["--sort", "body"]], ids=str)
@pytest.mark.parametrize("limit", [[], ["--limit", 9]], ids=str)
def test_only_the_messages_that_are_printed_are_counted(shape, limit):
    root = golden.store("torn-bad-crc-middle-4.9")
    bodies = run("message", "export", "-S", root, "-o", "tsv", "--columns", "body").lines[1:]
    assert len(bodies) > 1
    where = ("--where", f"body = '{bodies[0]}'", *limit)
    result = run("message", "export", "-S", root, "-o", "jsonl", *where, *shape)
    assert (result.code, len(result.lines)) == (8, 1)
    assert "exported 1 message, without 1 damaged record" in result.err
    none = run("message", "export", "-S", root, "-o", "jsonl", "--where", "body = '?'", *shape)
    assert (none.code, none.raw) == (8, b"")
    assert "exported 0 messages, without 1 damaged record" in none.err


def test_a_limit_ends_the_reading_with_a_filter_too(tmp_path):
    root = fill(tmp_path / "a", [(b"1", {"TAGS": "a"}, 0), (b"2", {"TAGS": "a", "late": "x"}, 0)])
    args = ("message", "export", "-S", root, "-o", "jsonl", "--mask", "property.late=drop")
    assert run(*args, "--where", "tags = a").err == ""
    assert "property.late" in run(*args, "--where", "tags = a", "--limit", 1).err, "not looked at"


def test_a_file_is_whole_or_not_there(tmp_path):
    source = fill(tmp_path / "a", NASTY)
    file = tmp_path / "x.jsonl"
    file.write_text("old")
    result = run("message", "export", "-S", source, "-t", "nowhere", "--save", file)
    assert result.code == 3
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a", "x.jsonl"] or len(
        list(tmp_path.glob(".x*"))
    ) == 0


def test_without_pyarrow_parquet_is_one_sentence(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    source = fill(tmp_path / "a", [(b"x", {}, 0)])
    result = run("message", "export", "-S", source, "--save", tmp_path / "x.parquet")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "Parquet needs the Python package pyarrow; install rmqctl[spark]" in result.err
    assert not list(tmp_path.glob("*x.parquet*"))


@pytest.mark.parametrize("form", ["jsonl", "csv", "raw", "parquet"])
def test_a_dry_run_exports_nothing_and_says_how_much_it_would_be(store, tmp_path, form):
    run("produce", "t", stdin=b"a\nb\n")
    file = tmp_path / "x"
    file.write_bytes(b"before")
    result = run("message", "export", "-t", "t", "--as", form, "--save", file, "-n")
    assert (result.code, result.out) == (0, ""), result.err
    assert result.err == f"dry run: would export 2 messages to {file}\n"
    assert file.read_bytes() == b"before"
    missing = run("message", "export", "-n", "--as", form, "--save", tmp_path / "no" / "x")
    assert (missing.code, missing.err.count("there is no folder")) == (2, 1)


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["import", "nowhere.jsonl"], 2, "no such file: nowhere.jsonl"),
        (["import", "-", "--map-topic", "a"], 2, "'a' is not a mapping"),
        (["import", "-", "--map-topic", "a=b/c"], 2, "topic 'b/c' has characters"),
        (["import", "-", "--as", "xml"], 2, "--as: 'xml' is not one of jsonl, csv, parquet, raw"),
        (["import", "-", "--as", "parquet"], 2, "Parquet cannot be read from a pipe"),
        (["import", "-", "-n"], 2, "has no dry run"),
        (["import", "-", "--limit", "1"], 2, "is for rows; message import stores the whole"),
        (["import", "-", "--where", "queue_id = 1"], 2, "filter when you export"),
        (["export", "--save", "x.json"], 2, "x.json: its form is unknown"),
        (["export", "--save", "."], 2, "is a folder"),
        (["export", "--save", "no/such/x.jsonl"], 2, "there is no folder no/such"),
        (["export", "--mask", "body"], 2, "--mask: 'body' is not a rule"),
        (["export", "--mask", "body=burn"], 2, "'burn' is not one of drop, stars, hash"),
        (["export", "--mask", "json.=drop"], 2, "is not a rule"),
        (["export", "--mask", "ids=drop"], 2, "ids can only be ids=hash"),
        (["export", "--mask", "hosts=stars"], 2, "hosts can only be hosts=drop"),
        (["export", "--mask", "body=drop", "--as", "raw"], 2, "--mask: not with raw"),
        (["export", "--mask", "@nowhere"], 1, "nowhere: No such file"),
        (["export", "--mask-key", "k"], 2, "--mask-key needs --mask"),
        (["export", "--mask", "keys=hash", "--mask-key", ""], 2, "--mask-key: the key is empty"),
        (["export", "--as", "parquet"], 2, "name a file with --save"),
        (["export", "--where", "queue_id = 1"], 2, "are for printed rows; a file has"),
        (["export", "--save", "x.csv", "-o", "json"], 2, "are for printed rows; a file has"),
    ],
)
def test_mistakes_are_one_sentence(store, args, code, sentence):
    result = run("message", *args, stdin=b"")
    assert (result.code, result.err.count("\n"), result.raw) == (code, 1, b""), result.err
    assert sentence in result.err


# -- masking ----------------------------------------------------------------------------------

JSON_BODY = b'{"id":7,"who":{"email":"ann@example.org"},"items":[{"n":"a"},{"n":"b"}]}'


def mask(rules: str, body: bytes = JSON_BODY, properties: bytes = b"") -> MessageExt:
    return masked(MessageExt("t", body, properties), parse_rules(rules, "secret"))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("json.who.email=drop", b'{"id":7,"who":{},"items":[{"n":"a"},{"n":"b"}]}'),
        ("json.who=drop, json.items=drop", b'{"id":7}'),
        ("json.items[*].n=stars", JSON_BODY.replace(b'"a"', b'"*"').replace(b'"b"', b'"*"')),
        ("json.items[0]=drop", JSON_BODY.replace(b'{"n":"a"},', b"")),
        ("json.items[*]=drop", b'{"id":7,"who":{"email":"ann@example.org"},"items":[]}'),
        ("json.who.email=text:x=y", JSON_BODY.replace(b"ann@example.org", b"x=y")),
        ("json.id=stars", JSON_BODY.replace(b"7", b'"*"')),
        ("json.nothing.there=drop", JSON_BODY),
        ("body=drop", b""),
        ("body=text:gone", b"gone"),
    ],
)
def test_rules_for_bodies(rules, expected):
    message = mask(rules)
    assert message.body == expected
    if expected != JSON_BODY:
        assert message.body_crc != MessageExt("t", JSON_BODY, body_crc=1).body_crc


def test_a_body_that_is_no_json_is_masked_as_a_whole():
    assert mask("json.who.email=stars", b"ann@example.org").body == b"***************"
    assert mask("json.who.email=drop", b"\xff\xfe").body == b""


def test_a_body_with_a_name_twice_is_masked_as_a_whole():
    """A reader of JSON shows one of the two values: the other one is in the body all the same."""
    body = b'{"who":{"email":"ann@example.org"},"who":{}}'
    assert mask("json.who.email=hash", body).body == mask("body=hash", body).body


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ([], "matched nothing"),
        ([b"Ann"], "matched nothing; 1 body that is not JSON was masked as a whole"),
        ([b"Ann", b"\xff", b""], "matched nothing; 2 bodies that are not JSON were masked"),
    ],
)
def test_a_body_that_is_no_json_hides_no_misspelt_path(others, says):
    rules = parse_rules("json.who.mail=hash, json.who.email=hash", "secret")
    for body in (JSON_BODY, *others):
        masked(MessageExt("t", body), rules)
    (sentence,) = unmatched(rules)
    assert sentence.startswith(f"--mask: json.who.mail=hash {says}")


@pytest.mark.parametrize(
    "path",
    [".email", ".", "a..b", "a.", "a[", "a[]", "a]", "a[x]", "a[0]b", "[]x", "a[-1]", ".[0]"],
)
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(ValueError, match="is not a path"):
        parse_rules(f"json.{path}=hash", "secret")
    with pytest.raises(ValueError, match="is not a rule"):
        parse_rules("json[]x=hash", "secret")


def test_each_form_of_a_path_is_taken():
    assert mask("json.items.[0].n=stars").body == JSON_BODY.replace(b'"a"', b'"*"')
    assert mask("json.[0].n=stars", b'[{"n":"a"}]').body == b'[{"n":"*"}]'
    assert mask("json.[0][1]=stars", b'[[1,"a"]]').body == b'[[1,"*"]]'


def test_hashes_are_equal_for_equal_texts_and_one_key_only():
    one = mask("json.who.email=hash").body
    assert one == mask("json.who.email=hash").body
    assert b"ann@" not in one
    other = masked(MessageExt("t", JSON_BODY), parse_rules("json.who.email=hash", "other")).body
    by_chance = masked(MessageExt("t", JSON_BODY), parse_rules("json.who.email=hash", None)).body
    assert len({one, other, by_chance}) == 3


def test_rules_for_keys_tags_and_properties():
    stored = b"KEYS\x01k1 k2\x02TAGS\x01TagA\x02color\x01red\x02size\x01XL\x02UNIQ_KEY\x01ID"
    message = mask("keys=stars,tags=drop,property.color=text:blue", b"x", stored)
    assert message.keys == ("**", "**")
    assert message.tags is None
    assert message.get_property("color") == "blue"
    message = mask("property.*=drop", b"x", stored)
    assert message.properties == {"KEYS": "k1 k2", "TAGS": "TagA", "UNIQ_KEY": "ID"}


def test_properties_that_have_the_address_of_a_client_go_with_the_hosts():
    names = ("REPLY_TO_CLIENT", "__BORNHOST", "RMQCTL_FAILURE_CLIENT")
    stored = "".join(f"{name}\x0110.0.0.7@4711\x02" for name in names) + "color\x01red"
    message = mask("hosts=drop", b"x", stored.encode())
    assert message.properties == {"color": "red"}


def test_nothing_that_is_masked_is_left_in_an_export(tmp_path):
    source = fill(
        tmp_path / "a",
        [(JSON_BODY, {"token": "topsecret", "KEYS": "ann k2", "TAGS": "TagA"}, 0)],
    )
    rules = tmp_path / "rules"
    rules.write_text("# who\njson.who.email=hash\nproperty.token=drop\n\nkeys=hash\n")
    for form in ("jsonl", "csv", "parquet"):
        file = tmp_path / f"x.{form}"
        result = run("message", "export", "-S", source, "--save", file, "--mask", f"@{rules}")
        assert result.code == 0, result.err
        data = file.read_bytes()
        assert b"ann" not in data
        assert b"topsecret" not in data
        with StoreView.open(source) as view:
            message = view.look_message_by_offset(0)
            assert message is not None
            assert str(message.body_crc).encode() not in data


@pytest.mark.parametrize("text", ["", "\n \n", "# json.who.email=hash\n  # keys=hash\n"])
def test_a_file_without_a_rule_exports_nothing(tmp_path, text):
    source = fill(tmp_path / "a", [(JSON_BODY, {"KEYS": "ann"}, 0)])
    rules, file = tmp_path / "rules", tmp_path / "x.jsonl"
    rules.write_text(text)
    result = run("message", "export", "-S", source, "--save", file, "--mask", f"@{rules}")
    assert (result.code, file.exists()) == (2, False), result.err
    assert f"--mask: {rules} has no rule" in result.err


@pytest.mark.parametrize("lines", [3, 40])  # objects, columns
def test_a_message_without_a_topic_is_left_out_alone(tmp_path, lines):
    rows = [{"topic": "T", "queue_id": 0, "body": f"{number}"} for number in range(lines)]
    del rows[1]["topic"]
    given = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    target = fill(tmp_path / "b", [])
    result = run("message", "import", "-", "--skip-invalid", "-S", target, stdin=given)
    assert "left out 1 message that cannot be sent; the first: line 2: names no" in result.err
    found = [body for _, _, body, *_ in messages_of(target)]
    assert found == [b"%d" % number for number in range(lines) if number != 1]
