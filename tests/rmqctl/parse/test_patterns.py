"""Every expression that a user gives ends: regular ones, --where, --json-path, masks."""

from __future__ import annotations

import json
import sys

import pytest

from rmqctl.message.exchange.masking import parse_rules
from rmqctl.parse.json_path import parse_json_path
from storage.parse.patterns import match_text, search_bytes, search_text
from tests.support.cli import run

CATASTROPHIC = [
    "(x+x+)+y",
    "(a+)+$",
    "(x|x|x)*y",
    "(.*x){20}y",
    r"^(\w+\s?)*$",
    "((x?){30}){30}x{30}y",
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_no_expression_takes_longer_than_its_text(pattern):
    assert not search_bytes(pattern)(b"x" * 50_000 + b"!")
    assert not search_text(pattern)("x" * 50_000 + "!")
    assert not match_text(pattern)("x" * 50_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("(", "missing"),
        ("(?=x)", "RE2 syntax"),
        (r"(x)\1", "RE2 syntax"),
        ("(?:(?:a?){1000}){1000}", "repetition"),
        ("(" * 6000 + ")" * 6000, "too long"),
    ],
)
def test_what_the_engine_does_not_know_is_refused_with_a_reason(pattern, what):
    for search in (search_bytes, search_text):
        with pytest.raises(ValueError, match=what):
            search(pattern)


def test_bytes_are_characters_of_bodies():
    assert search_bytes(r"\xff$")(b"a\xff")
    assert search_bytes("^caf..$")(b"caf\xc3\xa9")
    assert search_text("^caf.$")("caf\u00e9")
    assert search_text("b")("\udcff b")


def test_the_longest_expression_that_is_taken():
    for search in (search_bytes, search_text):
        search("x" * 10_000)
        with pytest.raises(ValueError, match="10001 bytes is too long"):
            search("x" * 10_001)
        with pytest.raises(ValueError, match="too long"):
            search("\u20ac" * 3_334)


def test_a_missing_engine_is_said_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ValueError, match="pip install google-re2"):
        search_bytes("x")


@pytest.fixture
def topic(store):
    bodies = ["x" * 5000 + "!", json.dumps({"a": "x" * 5000 + "!"})]
    assert run("produce", "t", stdin="\n".join(bodies).encode()).code == 0


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "words",
    [
        ["consume", "t", "-e", "--regex", "(x+x+)+y"],
        ["message", "search", "--regex", "(x+x+)+y"],
        ["message", "export", "-t", "t", "--regex", "(x+x+)+y"],
        ["consume", "t", "-e", "--json-path", "a ~ (x+x+)+y"],
        ["consume", "t", "-e", "--where", "body ~ '(x+x+)+y'"],
        ["consume", "t", "-e", "-g", "g", "--regex", "(x+x+)+y"],
    ],
)
def test_each_command_ends(topic, words):
    result = run(*words)
    assert result.code == 0
    assert not any("xxx" in line for line in result.lines)


DEEP = "(" * 3000 + "topic = 't'" + ")" * 3000


@pytest.mark.parametrize("text", [DEEP, "not " * 3000 + "topic = 't'", "! " * 3000 + "topic = t"])
def test_nested_conditions_of_rows_are_refused(topic, text):
    result = run("topic", "list", "--where", text)
    assert result.code == 2
    assert "nested deeper than 100 levels" in result.err
    assert len(result.err) < 500


@pytest.mark.slow
def test_a_long_chain_of_conditions_of_rows_is_none_of_depth(topic):
    text = " or ".join(["topic = 'no'"] * 3000 + ["topic = 't'"])
    assert run("topic", "list", "--where", text, "-o", "jsonl").code == 0


@pytest.mark.parametrize("path", ["a." * 3000 + "a", "[*]" * 3000, "a" + "[0]" * 3000 + " = 1"])
def test_a_path_of_thousands_of_steps_is_refused(path):
    with pytest.raises(ValueError, match="steps is too long"):
        parse_json_path(path)


def test_a_mask_s_path_of_thousands_of_steps_is_refused():
    with pytest.raises(ValueError, match="is not a path"):
        parse_rules("json." + "a." * 3000 + "a=drop", None)


def test_bodies_nested_as_deep_as_json_can_be_read_match_nothing():
    for depth in range(100, 3000, 100):
        body = b'{"a":' * depth + b"1" + b"}" * depth
        assert not parse_json_path("b")(body)
        parse_json_path("a ~ 1")(body)
