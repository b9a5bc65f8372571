"""Rows by columns are what the parser of one row makes of them, or are left to it."""

import base64
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings, strategies as st

from rmqctl import native
from rmqctl.message.exchange import import_reader
from rmqctl.output.message_rows import MessageRow
from rmqctl.produce.given_rows import Part, csv_reader, json_reader, runs_of
from rmqctl.produce.parsers import CsvParser, from_fields, parse_json
from storage.format.message import RESERVED_PROPERTIES, SCHEDULE_TOPIC
from storage.readonly import StoreView
from tests.support.cli import call as run_alone, run
from tests.support.compiled import needs_compiled
from tests.support.examples import examples

pytestmark = [
    needs_compiled,
    pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty"),
]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = texts.filter(bool) | st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", "DELAY", "color", "WAIT"])
wild = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
values = {
    "body": texts | st.none(),
    "body_base64": st.binary(max_size=7).map(lambda body: base64.b64encode(body).decode()),
    "keys": st.lists(texts, max_size=3) | texts | st.none(),
    "tags": texts | st.none(),
    "flag": st.integers(-(1 << 31), (1 << 31) - 1) | st.none(),
    "properties": st.dictionaries(names, texts, max_size=3) | st.none(),
    "topic": texts | st.none(),
    "queue_id": st.integers(0, 70_000) | st.none(),
    "store_timestamp": st.integers(0, 1 << 42),
    "key": texts,
    "headers": st.dictionaries(names, texts, max_size=2) | st.lists(texts, max_size=2),
    "value": texts,
    "msg_id": texts,
    "body_encoding": st.sampled_from(["json", "text"]),
}


@st.composite
def rows(draw):
    """A row of a few fields, some of them with values of any kind, in any form of JSON."""
    chosen = draw(st.lists(st.sampled_from(sorted(values)), unique=True, max_size=6))
    row = {name: draw(values[name] if draw(st.integers(0, 9)) else wild) for name in chosen}
    if not draw(st.integers(0, 20)):
        row["colour"] = 1
    if draw(st.booleans()):
        row.setdefault("body", "text")
    indent = draw(st.sampled_from([None, None, 1]))
    text = json.dumps(row, ensure_ascii=draw(st.booleans()), indent=indent)
    return text.encode().replace(b"\n", b"\t")


changes = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 3),
        st.sampled_from([*b'"\\{}[],:0123456789-+.eEu \t\r\x00\x01\x7f', 0x80, 0xC3, 0xED, 0xFF])
        | st.integers(0, 255),
    ),
    max_size=2,
)


def changed(text, made):
    """A text with some bytes replaced by others, or none."""
    for place, length, byte in made:
        at = place % (len(text) + 1)
        text = text[:at] + bytes((byte,) if length else ()) + text[at + length :]
    return text.replace(b"\n", b" ")


def as_parsed(parse, record):
    """The message of the parser of one row without what is not stored; None for a refusal, and for
    a blank record, which is left out before."""
    if not record.strip():
        return None
    try:
        message = parse(record)
    except ValueError:
        return None
    stored = {name: value for name, value in (message.properties or {}).items() if value}
    return message._replace(
        properties=stored or None, store_timestamp=None, keys=message.keys or None
    )


def check_rows(reader, parse, records):
    """Each row that is taken is that of the parser; gives how many were."""
    read = reader.read(records)
    taken = 0
    for begin, end, is_taken in runs_of(read):
        if is_taken:
            taken += end - begin
            parsed = [as_parsed(parse, record) for record in records[begin:end]]
            assert read.part(begin, end).messages() == parsed
    return taken


FORMS = {False: parse_json, True: import_reader.parse_line}


@given(st.lists(st.tuples(rows(), changes), min_size=1, max_size=8), st.booleans())
@settings(max_examples=examples(150), deadline=None)
@pytest.mark.slow
def test_a_row_of_json_that_is_taken_is_that_of_the_parser(given, has_places):
    reader = json_reader(has_places=has_places)
    records = [changed(text, made) for text, made in given]
    check_rows(reader, FORMS[has_places], [*records, *(text for text, _ in given)])


@given(st.lists(st.tuples(rows(), changes), min_size=1, max_size=8), st.booleans())
@settings(max_examples=4_000, deadline=None)
@pytest.mark.long
def test_a_row_of_json_that_is_taken_is_that_of_the_parser_often(given, has_places):
    reader = json_reader(has_places=has_places)
    check_rows(reader, FORMS[has_places], [changed(text, made) for text, made in given])


HEADERS = [
    ["body", "keys", "tags", "flag", "properties", "topic", "queue_id", "color"],
    ["body_base64", "key", "store_timestamp", "origin", "weight"],
    ["body", "body_base64", "headers"],
    ["value"],
    ["body", *(f"a property with a rather long name, number {n}" for n in range(12))],
]


@st.composite
def tables(draw):
    """A header, and lines of cells that may be quoted in any way."""
    header = draw(st.sampled_from(HEADERS))
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        cells = []
        for name in header:
            value = draw(values.get(name, texts))
            if isinstance(value, dict):
                value = json.dumps(value, ensure_ascii=False)
            elif isinstance(value, list):
                value = " ".join(value)
            text = "" if value is None else str(value)
            if draw(st.booleans()) or any(mark in text for mark in '",\r\n'):
                text = '"' + text.replace('"', '""') + '"'
            cells.append(text)
        lines.append(changed(",".join(cells).encode(), draw(changes)))
    return header, lines


def check_table(table, has_places):
    header, lines = table
    make = import_reader.parse_fields if has_places else from_fields
    parser = CsvParser(header, make)
    return check_rows(parser.reader(has_places=has_places), parser.parse, lines)


@given(tables(), st.booleans())
@settings(max_examples=examples(100), deadline=None)
@example((["body"], [b'""', b"a", b'"a""b"', b'a"b', b"a\r", b'"a\r\nb"\r']), False)
@pytest.mark.slow
def test_a_line_of_csv_that_is_taken_is_that_of_the_parser(table, has_places):
    check_table(table, has_places)


@given(tables(), st.booleans())
@settings(max_examples=4_000, deadline=None)
@pytest.mark.long
def test_a_line_of_csv_that_is_taken_is_that_of_the_parser_often(table, has_places):
    check_table(table, has_places)


USUAL: list[dict[str, Any]] = [
    {"body": "plain"},
    {"body": "", "keys": ["a", "b"], "tags": "T", "flag": -5},
    {"body_base64": "/w==", "keys": "k", "properties": {"p": "q", "KEYS": "k", "UNIQ_KEY": "1"}},
    {"value": "of kcat", "key": "k", "headers": {"h": "\u6d88\u606f", "i": 'a "b"'}},
    {"body": "\u00e9\t\u2028\U0001f600", "tags": None, "keys": [], "msg_id": None},
]


def test_usual_rows_are_taken():
    full = dict.fromkeys(MessageRow._fields, 0) | {
        "topic": "T",
        "queue_offset": 1 << 57,
        "tags": None,
        "keys": ["k1", "k2"],
        "body": "text",
        "body_base64": None,
        "properties": {"KEYS": "k1 k2", "color": "red"},
    }
    records = [json.dumps(row).encode() for row in (*USUAL, full)]
    records += [json.dumps(row, ensure_ascii=False, indent=1).encode() for row in (*USUAL, full)]
    for has_places, parse in FORMS.items():
        reader = json_reader(has_places=has_places)
        assert check_rows(reader, parse, records) == len(records)
    for has_places in FORMS:
        header = ["body", "keys", "flag", "properties", "color"]
        lines = [b'a,b c,-3,"{""p"": ""q""}",', b'"a,\n""b""",,,,red\r', b"x,,7,{},"]
        assert check_table((header, lines), has_places) == len(lines)


ODD = [
    b'{"body": "x", "keys": ["a", "b c"]}',
    b'{"body": "x", "body": "y"}',
    b'{"body": "x", "properties": {"a": "1", "a": "2"}}',
    b'{"body": "x", "colour": 1}',
    b'{"body": "x", "flag": 1.5}',
    b'{"body": "x", "flag": 4294967296}',
    b'{"body": "x", "keys": ["a\\u0001"]}',
    b'{"body": "\\ud800"}',
    b'{"body": "\xff"}',
    b'{"body": {"a": NaN}}',
    b'{"body": {"a": 1}}',
    b'{"body": "x", "properties": {"n": 1}}',
    b'{"body": "x"} x',
    b'{"keys": ["x"]}',
    b"[1]",
    b'{"body": "x", "topic": {"body": 1, "body": 2}}',
    b"   ",
    json.dumps({"body": "x", "properties": {"long": "y" * 33_000}}).encode(),
    json.dumps({"body": "x", "properties": {"DELAY": "3", "TRAN_MSG": "true"}}).encode(),
    json.dumps({"body": "x", "properties": {"DELAY": "3", "REAL_TOPIC": "T"}}).encode(),
    b'{"body": "x", "keys": ["k"], "properties": {"KEYS": "x"}}',
    b'{"body": "x", "properties": {"TAGS": "t"}}',
    b'{"body": "x", "keys": "a b", "properties": {"KEYS": " a  b "}}',
]


LEFT_OUT = [
    b'{"body": "\\ud83d"}',
    b'{"body": "\\ud83d\\u0041"}',
    b'{"body": "\\ud83d\\ud83d"}',
    b'{"body": "\\ud83dx"}',
    b'{"body": "\\udc00"}',
    b'{"body": "\\u00g0"}',
    b'{"body": "\\u00"}',
    b'{"body": "\\x"}',
    b'{"body": "\x01"}',
    b'{"body": "\xed\xa0\x80"}',
    b'{"body": "x", "flag": 01}',
    b'{"body": "x", "flag": -}',
    b'{"body": "x", "flag": 1e2}',
    b'{"body": "x", "flag": 2147483648}',
    b'{"body": "x", "store_size": 00}',
    b'{"body": "x", "store_size": NaN}',
    b'{"body": "x", "tags": nul}',
    b'{"body": "x",}',
    b'{"body": "x"',
    b'{"body": "x" "tags": "t"}',
    b'{"body": "x", "tags" "t"}',
    b'{"body": "x", "keys": ["a",]}',
    b'{"body": "x", "keys": ["a" "b"]}',
    b'{"body": "x", "keys": [null]}',
    b'{"body": "x", "keys": ["a", "b c"]}',
    b'{"body": "x", "keys": ["a"], "key": "a"}',
    b'{"body": "x", "properties": {"a": "b",}}',
    b'{"body": "x", "properties": {"": "b"}}',
    b'{"body": "x", "properties": {"a": "b", "a": "b"}}',
    b'{"body": "x", "keys": ["a\\u0001"]}',
    b'{"body": "x", "tags": "a\\u0002"}',
    b'{"body": "x", "properties": {"a\\u0001": "b"}}',
    b'{"body": "x", "properties": {"a": "b\\u0002"}}',
    b'{"body": "x", "keys": "a b", "properties": {"KEYS": "a  b"}}',
    b'{"body": "x", "tags": "t", "properties": {"TAGS": "u"}}',
    b'{"body": "x", "properties": {"TAGS": "t"}}',
    b'{"body": "x", "properties": {"DELAY": "0"}}',
    b'{"body_base64": "/w="}',
    b'{"body_base64": "/x=="}',
    b'{"body_base64": "/w==/w=="}',
    b'{"body": "x"} {}',
    b'\xef\xbb\xbf{"body": "x"}',
    b'{"body": "x", "body_encoding": "text"}',
    b"{}",
    b"",
]


@pytest.mark.parametrize("record", LEFT_OUT, ids=repr)
def test_rows_that_are_left_to_the_parser(record):
    for has_places in FORMS:
        reader = json_reader(has_places=has_places)
        assert reader is not None
        assert reader.read([record]).bodies == [None]


LINES_LEFT_OUT = [
    b'"a"xb',
    b'"a"x,b',
    b'"a" ,b',
    b'"a"""b,c',
    b'"a,b',
    b'a"b,c',
    b"a,b,c",
    b"a",
    b"a\rb,c",
    b"a,b\r\r",
    b"a\x00,b",
    b"\xff,b",
    b"a\x01,b",
    b" \t",
]


@pytest.mark.parametrize("line", LINES_LEFT_OUT, ids=repr)
def test_lines_that_are_left_to_the_parser(line):
    reader = CsvParser(["keys", "body"]).reader(has_places=False)
    assert reader is not None
    assert reader.read([line, b'"k",b']).bodies == [None, b"b"]


def contents(root: Path) -> list[Any]:
    """What is stored of each message, in the order of the queues, without its times and ids."""
    with StoreView.open(root) as view:
        found: list[Any] = []
        for topic, queue_id in sorted(view.queues()):
            low, high = view.queue_bounds(topic, queue_id)
            for offset in range(low, high):
                unit = view.unit(topic, queue_id, offset)
                assert unit is not None
                code = unit[2]
                for message in view.get_message(topic, queue_id, offset, 1).messages:
                    properties = dict(message.properties, UNIQ_KEY="")
                    place = topic, queue_id, offset
                    head = message.flag, message.sys_flag, message.reconsume_times
                    if topic == SCHEDULE_TOPIC:
                        code -= message.store_timestamp
                    found.append((place, message.body, properties, head, code))
        return found


def by_objects(*command, stdin):
    with patch.object(native, "compiled", None):
        return run(*command, stdin=stdin)


def mixed(times):
    """Usual rows with an odd one between, each odd one at several distances."""
    records = []
    for number, odd in enumerate(ODD * times):
        place = {"topic": "T", "queue_id": number % 3}
        usual = [json.dumps(row | place).encode() for row in USUAL[: number % 5 + 1]]
        # a message without a queue goes to any
        records += [*usual, odd.replace(b'{"', b'{"queue_id": 1, "', 1)]
    return b"\n".join(records) + b"\n"


@pytest.mark.parametrize(
    "command",
    [
        "produce T --input jsonl -Q 0",
        "produce T --input jsonl -Q 1 --skip-invalid --allow-empty",
        "produce T --input jsonl -Q 1 --skip-invalid --tag t -k d",
        "produce T --input jsonl -Q 1 --skip-invalid -H p=z",
        "produce T --input jsonl --skip-invalid --ordering-key %k",
        "produce T --input jsonl --skip-invalid --delay-level 2 -Q 1",
        "produce T --input jsonl -Q 0 --skip-invalid --batch 3 -c 30",
        "message import - --skip-invalid --allow-empty",
        "message import - U --skip-invalid -o csv --columns topic,queue_id",
    ],
)
@pytest.mark.slow
def test_both_roads_store_the_same_and_refuse_the_same(tmp_path, command):
    given = mixed(3)
    roads = []
    for number, call in enumerate((run, by_objects)):
        root = tmp_path / str(number)
        run("store", "init", root)
        result = call(*command.split(), "-S", root, stdin=given)
        warnings = [line for line in result.err.splitlines() if not line.startswith("sent ")]
        roads.append(
            (result.code, result.raw if "csv" in command else b"", warnings, contents(root))
        )
    assert roads[0] == roads[1]
    assert roads[0][3], roads[0][2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "template", ["%k,%g,%h,%s", "%k,%g,%h,%s --delay-level 1", "%k,%g,%h,%s -H a=b"]
)
def test_messages_of_a_template_that_are_not_alike(tmp_path, template):
    lines = [b"k%d,t%d,a=b;c=%d,body %d" % (n, n % 3, n, n) for n in range(50)]
    lines[20:20] = [b"k\x01,t,,x", b"k,t\x02,,x", b"k,t,,", b"k,\xff,,x", b"k,t,DELAY=3,x"]
    roads = []
    for number, call in enumerate((run, by_objects)):
        root = tmp_path / str(number)
        run("store", "init", root)
        command = ["produce", "T", "-Q", "1", "--skip-invalid", "--batch", "18", "-S", root, "-f"]
        result = call(*command, *template.split(" ", 2), stdin=b"\n".join(lines))
        warnings = [line for line in result.err.splitlines() if not line.startswith("sent ")]
        roads.append((result.code, warnings, contents(root)))
    assert roads[0] == roads[1]
    assert len(roads[0][2]) >= 50, roads[0][1]


@pytest.mark.slow
def test_messages_before_one_of_a_topic_that_takes_none_are_stored(tmp_path):
    rows = [{"topic": "TU"[n == 30], "queue_id": 0, "body": f"{n}"} for n in range(40)]
    given = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    roads = []
    for number, call in enumerate((run, by_objects)):
        root = tmp_path / str(number)
        run("store", "init", root)
        run("topic", "create", "U", "--perm", "4", "-S", root)
        result = call("message", "import", "-", "-S", root, stdin=given)
        roads.append((result.code, result.err, [body for _, body, *_ in contents(root)]))
    assert roads[0] == roads[1]
    assert roads[0][2] == [b"%d" % n for n in range(30)]


@pytest.mark.parametrize("options", [["-Q", "1"], ["-Q", "1", "--key-field", "id"]])
@pytest.mark.slow
def test_both_roads_of_csv_store_the_same(tmp_path, options):
    key = "id" if "--key-field" in options else "keys"
    lines = [f"{key},body,flag,color,properties".encode()]
    lines += [b'k%d,"a, ""%d""\nb",%d,red,"{""p"":""q""}"' % (n, n, n) for n in range(40)]
    lines[5:5] = [b"a,b", b"", b'k,"a" b,,,', b"k,x,1.5,,", b"\xff,\xff,1,2,", b'k,x,,,"{""a"":1}"']
    lines[30:30] = [b"k,x,99999999999,,", b"k,,1,2,", b"k,x\x01,1,a\x01b,", b'k,x,,,"[1]"']
    roads = []
    for number, call in enumerate((run, by_objects)):
        root = tmp_path / str(number)
        run("store", "init", root)
        command = ["produce", "T", "--input", "csv", "--skip-invalid", *options, "-S", root]
        result = call(*command, stdin=b"\n".join(lines) + b"\n")
        warnings = [line for line in result.err.splitlines() if not line.startswith("sent ")]
        roads.append((result.code, warnings, contents(root)))
    assert roads[0] == roads[1]
    assert len(roads[0][2]) >= 40


def test_properties_have_room_for_long_names_in_the_header(tmp_path):
    names = [*(f"customer_has_confirmed_the_{n:02}" for n in range(12)), "x" * 20_000]
    header = ",".join(["id", *names])
    lines = [header, *(f"{n}" + ",1" * len(names) for n in range(20))]
    run("store", "init", tmp_path / "store")
    result = run_alone(
        *["produce", "T", "--input", "csv", "--body-field", "id", "-Q", "0"],
        *["-S", tmp_path / "store"],
        stdin="\n".join(lines).encode(),
        env={"PYTHONMALLOC": "debug"},  # finds bytes after a block changed
    )
    assert result.code == 0, result.err
    stored = contents(tmp_path / "store")
    assert [body for _, body, *_ in stored] == [b"%d" % n for n in range(20)]
    assert {properties["x" * 20_000] for _, _, properties, *_ in stored} == {"1"}


def test_properties_of_brokers_and_clients_are_all_left_out():
    reader = json_reader(has_places=False)
    assert reader is not None
    row: dict[str, Any] = {
        "body": "x",
        "keys": ["v"],
        "tags": "v",
        "properties": dict.fromkeys(sorted(RESERVED_PROPERTIES - {"DELAY"}), "v") | {"a": "b"},
    }
    assert reader.read([json.dumps(row).encode()]).properties == [b"a\x01b"]


def test_very_wide_tables_are_left_to_the_parser():
    columns = [(f"c{n}", Part.IGNORED) for n in range(65)]
    assert csv_reader(columns, has_places=False) is None
