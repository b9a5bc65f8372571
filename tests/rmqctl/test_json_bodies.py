"""JSON that is hard to read or to write: nested deep, members that are no texts or no numbers."""

import json

import pytest

from tests.support.cli import run

DEEP = "[" * 5000 + "]" * 5000
ASKED = [
    ["consume", "t", "-e", "--json-path", "a = 5"],
    ["consume", "t", "-e", "--body", "json"],
    ["message", "search", "-t", "t", "--json-path", "a = 5"],
]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def deep(store):
    """Messages, the second of which is nested deeper than Python's reader goes."""
    bodies = ['{"a":5,"n":1}', DEEP, '{"a":5,"n":2}']
    run("store", "init", store, "--small")
    assert run("produce", "t", "-S", store, stdin="\n".join(bodies).encode()).code == 0
    return store


@pytest.mark.parametrize("asked", ASKED, ids=["json-path", "body", "search"])
def test_a_deep_body_hides_no_other_message(deep, asked):
    result = run(*asked, "-S", deep, "-o", "jsonl")
    assert (result.code, result.err) == (0, "")
    found = [json.loads(line)["body"] for line in result.out.splitlines()]
    values = [
        body if isinstance(body, dict) else json.loads(body) for body in found if body != DEEP
    ]
    assert [value["n"] for value in values] == [1, 2]
    assert (len(found) == 3) == ("--body" in asked)


def test_a_deep_body_sends_no_message_of_its_group_back(deep):
    result = run("consume", "t", "-g", "g", "-e", "--json-path", "a = 5", "-S", deep)
    assert (result.code, "failed" in result.err) == (0, False)
    assert len(result.out.splitlines()) == 2
    assert run("retry", "browse", "g", "-S", deep, "-o", "json").json() == []


def sent(store, text: bytes, *options):
    run("store", "init", store, "--small")
    result = run("produce", "t", "-S", store, "-q", *options, stdin=text)
    shown = run(
        "consume", "t", "-e", "-S", store, "-o", "jsonl", "--columns", "body,keys,properties"
    )
    return result, [json.loads(line) for line in shown.out.splitlines()]


def test_a_line_that_is_nested_deep_is_named_and_may_be_left_out(store):
    text = f'{{"body":"a"}}\n{{"body":{DEEP}}}\n{{"body":"b"}}\n'
    result, rows = sent(store, text.encode(), "--input", "jsonl", "--skip-invalid")
    assert "line 2: is not JSON: it is nested too deep" in result.err
    assert [row["body"] for row in rows] == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    ['{"body":{"a":1e400}}', '{"body":"x","keys":[{}]}', '{"body":"x","properties":{"p":{"x":1}}}'],
)
def test_what_has_no_text_is_refused(store, line):
    result, rows = sent(store, line.encode(), "--input", "jsonl")
    assert (result.code, rows) == (2, [])
    assert "line 1" in result.err


def test_scalars_are_json_and_null_is_nothing(store):
    line = '{"body":"x","keys":["a",null,7],"properties":{"n":null,"t":true,"f":1.5}}'
    result, rows = sent(store, line.encode(), "--input", "jsonl")
    assert (result.code, rows[0]["keys"]) == (0, ["a", "7"])
    own = {name: value for name, value in rows[0]["properties"].items() if name in "ntf"}
    assert own == {"t": "true", "f": "1.5"}


@pytest.mark.parametrize("text", ["keys,body\nk,a\n", "body,keys\na,k\n", '"keys",body\nk,a\n'])
def test_a_mark_of_the_byte_order_is_no_part_of_a_column(store, text):
    result, rows = sent(store, b"\xef\xbb\xbf" + text.encode(), "--input", "csv")
    assert (result.code, rows[0]["keys"], rows[0]["body"]) == (0, ["k"], "a")


def test_a_column_that_is_there_twice_is_refused(store):
    result, rows = sent(store, b"body,body\na,b\n", "--input", "csv")
    assert (result.code, rows) == (2, [])
    assert "has body twice" in result.err


def test_a_masked_body_stays_json(store, tmp_path):
    sent(store, b'{"m":"x@y","big":1e400}\n')
    saved = tmp_path / "m.jsonl"
    result = run(
        "message", "export", "-t", "t", "-S", store, "--save", saved, "--mask", "json.m=hash", "-y"
    )
    assert result.code == 0, result.err
    body = json.loads(saved.read_text())["body"]
    assert "x@y" not in body
    assert "Infinity" not in body


BODIES = (b'{"a": 1, "b": [1.5, null]}', b"plain", b'"quoted"', b"null", b"12", b"1e400", b"\xff")


@pytest.fixture
def mixed(store):
    """A message of each kind of body."""
    run("store", "init", store, "--small")
    assert run("produce", "t", "-Q", 0, "-S", store, stdin=b"\n".join(BODIES)).code == 0
    return store


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_body_json_gives_values_and_says_how_each_body_is_held(mixed, form):
    consumed = run("consume", "t", "-e", "--body", "json", "-o", form, "-S", mixed)
    rows = json.loads(consumed.out) if form == "json" else map(json.loads, consumed.lines)
    assert [(row["body"], row["body_base64"], row["body_encoding"]) for row in rows] == [
        ({"a": 1, "b": [1.5, None]}, None, "json"),
        ("plain", None, "text"),
        ("quoted", None, "json"),
        (None, None, "json"),
        (12, None, "json"),
        ("1e400", None, "text"),  # no JSON writer can express it
        (None, "/w==", "base64"),
    ]


def test_around_a_position_bodies_are_values_too(mixed):
    assert run("consume", "t", "-g", "g", "-c", 1, "-S", mixed).code == 0
    around = ("offset", "inspect", "g", "--around", "1,0", "-o", "json", "-S", mixed)
    (row,) = run(*around, "--body", "json").json()
    assert (row["body"], row["body_encoding"]) == ({"a": 1, "b": [1.5, None]}, "json")
    (row,) = run(*around).json()
    assert (row["body"], "body_encoding" in row) == (BODIES[0].decode(), False)


@pytest.mark.slow
def test_values_come_back_as_bodies_and_the_default_is_exact(mixed, tmp_path):
    values = run("consume", "t", "-e", "--body", "json", "-o", "jsonl", "-S", mixed).raw
    exact = run("consume", "t", "-e", "-o", "jsonl", "-S", mixed).raw
    for lines, wanted in ((exact, BODIES), (values, (b'{"a":1,"b":[1.5,null]}', *BODIES[1:]))):
        copy = tmp_path / f"copy-{len(lines)}"
        run("store", "init", copy, "--small")
        result = run("produce", "t", "-Q", 0, "--input", "jsonl", "-S", copy, stdin=lines)
        assert result.code == 0, result.err
        assert run("consume", "t", "-e", "-S", copy).raw == b"\n".join(wanted) + b"\n"
