import json

import pytest
from hypothesis import given, strategies as st

from rmqctl.parse.json_path import parse_json_path
from tests.support.cli import run


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """Five messages that differ in everything that can be filtered by; for reading only."""
    root = tmp_path_factory.mktemp("five") / "s"
    assert run("store", "init", root, "--small").code == 0
    send = [
        (["--tag", "new", "-k", "k1"], b'{"id": 1, "items": [{"sku": "x7", "n": 2}]}'),
        (["--tag", "paid", "-k", "k2", "-k", "k1"], b'{"id": 2, "items": []}'),
        (["-H", "color=red"], b"plain text"),
        (["-H", "color=green"], b"\xff\xfe"),
        (["--tag", "new"], b"x" * 5000),
    ]
    for options, body in send:
        words = ("produce", "t", "-Q", 1, "-D", "", *options, "-S", root)
        assert run(*words, stdin=body).code == 0
    return root


@pytest.fixture
def orders(five, monkeypatch):
    monkeypatch.setenv("RMQCTL_STORE", str(five))
    return five


def found(*options):
    """Queue offsets of what a filter leaves."""
    result = run("consume", "t", "-e", "-f", r"%o\n", *options)
    assert result.code == 0, result.err
    return [int(line) for line in result.lines]


@pytest.mark.slow
@pytest.mark.feature(29, 31, 32, 33, 34)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--tag", "new"], [0, 4]),
        (["--tag", "new || paid"], [0, 1, 4]),
        (["--tag", "*"], [0, 1, 2, 3, 4]),
        (["--tag", "none"], []),
        (["--key", "k1"], [0, 1]),
        (["-k", "k"], []),
        (["--property", "color"], [2, 3]),
        (["-H", "color=r*"], [2]),
        (["-H", "color", "-H", "color=g*"], [3]),
        (["-H", "TAGS=paid"], [1]),
        (["--body", "plain"], [2]),
        (["--regex", "^plain.*t$"], [2]),
        (["--regex", r"\xff"], [3]),
        (["--json-path", "id"], [0, 1]),
        (["--json-path", "id = 2"], [1]),
        (["--json-path", "$.items[*].sku=x7"], [0]),
        (["--json-path", "items[0].n > 1"], [0]),
        (["--min-size", "4K"], [4]),
        (["--max-size", "10"], [2, 3]),
        (["--min-size", "1K", "--max-size", "4K"], []),
        (["--attempts", "0"], [0, 1, 2, 3, 4]),
        (["--attempts", "1.."], []),
        (["--born-host", "127.0.0.1"], [0, 1, 2, 3, 4]),
        (["--born-host", "127.*"], [0, 1, 2, 3, 4]),
        (["--born-host", "10.*"], []),
        (["-Q", "1"], [0, 1, 2, 3, 4]),
        (["-Q", "0,2-3"], []),
        (["--tag", "new", "--min-size", "1K"], [4]),
        (["--from", "-1h"], [0, 1, 2, 3, 4]),
        (["--from", "+1h"], []),
        (["--to", "-1h"], []),
        (["--to", "+1h"], [0, 1, 2, 3, 4]),
    ],
)
def test_filters(orders, options, expected):
    assert found(*options) == expected


@pytest.mark.slow
def test_a_filter_by_id_takes_both_kinds(orders):
    rows = [json.loads(line) for line in run("consume", "t", "-e", "-o", "jsonl").lines]
    ids = ["--id", rows[1]["msg_id"], "--id", rows[3]["offset_msg_id"]]
    assert found(*ids) == [1, 3]


def test_a_regex_of_an_export_and_of_stats_is_one_of_bodies(orders):
    assert found("--regex", "^red$") == []
    for words in (["message", "export"], ["message", "stats", "-o", "json"]):
        inside = run(*words, "t", "--regex", "^plain").out
        beside = run(*words, "t", "--regex", "^red$").out  # the value of a property
        assert inside != beside
        assert beside == run(*words, "t", "--regex", "^nothing$").out


@pytest.mark.slow
@pytest.mark.feature(14, 15)
def test_from_and_to_are_half_open(orders):
    rows = [json.loads(line) for line in run("consume", "t", "-e", "-o", "jsonl").lines]
    times = [row["store_timestamp"] for row in rows]
    assert found("--from", times[2]) == [i for i in range(5) if times[i] >= times[2]]
    assert found("--to", times[2]) == [i for i in range(5) if times[i] < times[2]]
    assert found("--from", times[1], "--to", times[1]) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--regex", "("),
        ("--json-path", "a["),
        ("--json-path", "=x"),
        ("--json-path", "a > b"),
        ("--json-path", "a ~ ("),
        ("--min-size", "big"),
        ("--max-size", "-1"),
        ("--attempts", "x"),
        ("--attempts", ".."),
        ("--queue", "x"),
        ("--from", "x"),
        ("--to", "x"),
        ("--tag", " || "),
        ("--property", "=x"),
    ],
)
def test_malformed_filters_are_usage_errors(store, option, value):
    result = run("consume", "t", "-e", option, value)
    assert result.code == 2
    assert option in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--attempts", "3..1"], "--attempts: '3..1' is an empty range: 3 is more than 1"),
        (["--min-size", "1K", "--max-size", "1"], "--min-size 1K is larger than --max-size 1"),
    ],
)
@pytest.mark.parametrize("command", [["consume", "t", "-e"], ["message", "stats"]])
def test_bounds_that_nothing_can_lie_between_are_usage_errors(store, command, options, sentence):
    run("produce", "t", stdin=b"x\n")
    result = run(*command, *options)
    assert (result.code, result.raw) == (2, b"")
    assert sentence in result.err


@pytest.mark.slow
def test_bounds_may_be_the_same(orders):
    assert found("--min-size", "10", "--max-size", "10") == [2]
    assert found("--attempts", "0..0") == [0, 1, 2, 3, 4]
    assert found("--from", "-1h", "--to", "-1h") == []


@pytest.mark.slow
def test_a_range_that_ends_before_it_begins_is_refused(orders):
    result = run("consume", "orders", "-e", "--from", "-1h", "--to", "-2h")
    assert (result.code, result.out) == (2, "")
    assert "--from" in result.err
    assert "the range ends before it begins" in result.err


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("a", True),
        ("a.b[1]", True),
        ("a.b[9]", False),
        ("a['b'][0] = 1", True),
        ("$.a.c", False),
        ("a.d", False),
        ("a.d = null", True),
        ("*.b", True),
        ("a.*[*] = two", True),
        ("a.b[*] ~ ^tw", True),
        ("a.e = true", True),
        ("a.e != false", True),
        ("a.b[0] >= 1", True),
        ("a.b[0] < 1", False),
        ("a.e > 0", False),
        ('a.b = [1, "two"]', True),
        ("a.f == 'x y'", True),
    ],
)
def test_json_paths(path, holds):
    body = b'{"a": {"b": [1, "two"], "d": null, "e": true, "f": "x y"}}'
    assert parse_json_path(path)(body) is holds
    assert parse_json_path(path)(b"no json") is False


@pytest.mark.slow
@given(st.text(max_size=20))
def test_any_text_is_a_path_or_a_ValueError(text):
    try:
        test = parse_json_path(text)
    except ValueError:
        return
    assert test(b"{}") in (True, False)
