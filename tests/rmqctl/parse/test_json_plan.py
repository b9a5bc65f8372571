"""Conditions on many JSON bodies at once: the answers and the facts are those of one by one."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from rmqctl.parse import json_plan
from rmqctl.parse.json_path import JsonCondition, JsonFilter
from rmqctl.parse.json_plan import Answer, Plan
from tests.support.compiled import needs_compiled
from tests.support.examples import examples

NAMES = st.sampled_from(["a", "b", "c d", "\u00e9", "", "a.b"])
ODD_NUMBERS = (
    "0", "-0", "-0.0", "0.0", "1", "1.0", "1e0", "10E-1", "100e-2", "1.5", "-1.5", "0.1",
    "0.30000000000000004", "9007199254740992", "9007199254740993", "9007199254740993.0",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551616",
    "1e22", "1e23", "1e308", "1e999", "-1e999", "1e-400", "123456789012345", "1234567890123456",
    "123456789012345e7", "999999999999999999", "1000000000000000000", "NaN", "Infinity",
    "-Infinity", "01", "1.", ".5", "+1", "-", "1e", "1e+", "0x1", "1_0", "1" * 999, "1" * 4301,
    "0." + "0" * 30 + "1", "0e5", "000",
)  # fmt: skip
TEXTS = (
    '"x"', '""', '"1"', '"1.0"', '"true"', '"null"', '"\u00e9"', '"\U0001f680"', '"[]"',
    '"NaN"',
    r'"\u0078"', r'"\ud800"', r'"\ud83d\ude80"', r'"\n"', r'"\x"', r'"\u12"', r'"\u00zz"',
    '"a\tb"', '"a\x7fb"', '"x', "x", '"0123456789"', '"01234567\\"9"', '"01234567\x01"',
)  # fmt: skip
WORDS = st.sampled_from(["true", "false", "null", "tru", "nulls", "True", ""])
BLANKS = st.sampled_from(["", "", "", " ", "\n\t\r ", "\x0b", "\u00a0"])


def _joined(opening: str, closing: str, parts: Sequence[str], blank: str) -> str:
    return opening + f"{blank},{blank}".join(parts) + blank + closing


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = NAMES.map(json.dumps) | NAMES.map(lambda name: json.dumps(name, ensure_ascii=False))
    members = st.builds(
        lambda name, blank, value: f"{name}{blank}:{blank}{value}", names, BLANKS, inner
    )
    return st.builds(
        lambda parts, blank: _joined("{", "}", parts, blank), st.lists(members, max_size=4), BLANKS
    ) | st.builds(
        lambda parts, blank: _joined("[", "]", parts, blank), st.lists(inner, max_size=3), BLANKS
    )


PLAIN = st.sampled_from(["1", "2", "1.5", '"x"', '"y"', "true", "null", "[]", "{}"])
VALUES = st.recursive(PLAIN | st.sampled_from(ODD_NUMBERS + TEXTS) | WORDS, nested, max_leaves=8)
SOUND = st.recursive(PLAIN, nested, max_leaves=8)
BODIES = (
    st.builds(lambda a, text, b: f"{a}{text}{b}".encode("utf-8", "replace"), BLANKS, VALUES, BLANKS)
    | nested(SOUND).map(lambda text: text.encode())
    | st.builds(
        lambda text, at, byte: text[: at % (len(text) + 1)] + byte + text[at % (len(text) + 1) :],
        nested(SOUND).map(lambda text: text.encode()),
        st.integers(0, 200),
        st.binary(max_size=2),
    )
    | st.sampled_from(["utf-8-sig", "utf-16", "utf-16-le", "utf-32"]).map('{"a":1}'.encode)
)

PATHS = st.sampled_from(
    ["a", "b", "a.b", "['c d']", "\u00e9", "['']", "['a.b']", "a[0]", "a[1].b", "[0]", "$", "a[-1]",
     "a.*", "..b", "a[0:2]", "a.b.a"]
)  # fmt: skip
LITERALS = (
    "1", "-0", "0", "1.0", "1.5", "0.1", "x", "'x'", "'1'", "''", "true", "'true'", "null",
    "'null'",
    "9007199254740993", "9007199254740992.0", "9223372036854775808", "1e23", "inf", "nan", "[]",
    "{}", "'[]'", "'\\u00e9'", "\U0001f680", "0.30000000000000004", "123456789012345e7", "'y'",
)  # fmt: skip
NUMBERS = ("1", "0", "-1", "1.5", "0.1", "9007199254740993", "'x'", "'1'", "1e400")
_LITERALS = st.sampled_from(LITERALS)
SIMPLE = (
    st.builds("{} = {}".format, PATHS, _LITERALS)
    | st.builds("{} != {}".format, PATHS, _LITERALS)
    | st.builds(
        "{} {} {}".format, PATHS, st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from(NUMBERS)
    )
    | st.builds("{} in ({}, {})".format, PATHS, _LITERALS, _LITERALS)
    | st.builds("{} not in ({}, {})".format, PATHS, _LITERALS, _LITERALS)
    | st.builds("{} ~ x".format, PATHS)
    | st.builds("{} not exists".format, PATHS)
    | st.builds("1 < @.{}".format, st.sampled_from(["a", "a.b"]))
    | st.builds("@.a {} @.b".format, st.sampled_from(["=", "<"]))
    | st.just("length(a) > 1")
    | PATHS
)
EXPRESSIONS = st.recursive(
    SIMPLE,
    lambda inner: (
        st.builds("({} and {})".format, inner, inner)
        | st.builds("({} or {})".format, inner, inner)
        | st.builds("not ({})".format, inner)
    ),
    max_leaves=4,
)


def ends_of(bodies: Sequence[bytes]) -> Any:
    return array("i", accumulate(map(len, bodies), initial=0))


@needs_compiled
@pytest.mark.slow
@settings(max_examples=examples(150))
@given(st.lists(BODIES, min_size=1, max_size=12), st.lists(EXPRESSIONS, min_size=1, max_size=2))
@example([b'{"a":1}'] * 40 + [b'{"b":' + b"[" * 200 + b"]" * 200 + b"}"], ["a = 2"])
@example([b"{" + b" " * 5 + b"}"] * 30, ["a.b > 1"])
@example([b'{"a":1,"a":"x"}', b'{"a":{"b":1},"a":{}}', b'{"a":{"b":1},"a":1}'], ["a.b = 1"])
def test_many_bodies_have_the_answers_of_each(bodies, expressions):
    alone = JsonFilter([JsonCondition(text) for text in expressions])
    wanted = bytes(map(alone, bodies))
    together = JsonFilter([JsonCondition(text) for text in expressions])
    rows = bytearray(b"\1" * len(bodies))
    together.many(ends_of(bodies), b"".join(bodies), rows)
    assert rows == wanted
    assert together.mistakes() == alone.mistakes()


CONDITIONS = (
    *(f"a = {literal}" for literal in LITERALS),
    *(f"a != {literal}" for literal in LITERALS),
    *(f"a in (7, {literal})" for literal in LITERALS),
    *(f"a {order} {number}" for order in ("<", "<=", ">", ">=") for number in NUMBERS),
    "a",
    "not a",
    "b",
    "a.b = 1",
    "a[0]",
)


@needs_compiled
@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ['{{"a":{}}}', r'{{"\u0061":{}}}', '{{"b":{},"a":1}}', '{{"a":[{}]}}', '{{"a":1}}{}']
)
def test_each_odd_value_has_the_answer_of_each_condition(form):
    values = (*ODD_NUMBERS, *TEXTS, "true", "false", "null", "", "[]", "{}", '{"b":1}', '"\ufeff"')
    bodies = [form.format(value).encode("utf-8", "replace") for value in values]
    ends, text = ends_of(bodies), b"".join(bodies)
    for condition in CONDITIONS:
        alone, together = (JsonFilter([JsonCondition(condition)]) for _ in range(2))
        wanted = dict(zip(bodies, map(alone, bodies), strict=True))
        for _ in range(2):  # the names of the first objects that lack one are noted
            rows = bytearray(b"\1" * len(bodies))
            together.many(ends, text, rows)
            assert dict(zip(bodies, map(bool, rows), strict=True)) == wanted, condition
        assert together.mistakes() == alone.mistakes()


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(BODIES, min_size=1, max_size=5), SIMPLE)
def test_without_compiled_code_each_is_tested(bodies, expression):
    finder = JsonFilter([JsonCondition(expression)])
    wanted = bytes(map(finder, bodies))
    rows = bytearray(b"\1" * len(bodies))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_plan, "json_tests", json_plan._json_tests)
        finder.many(ends_of(bodies), b"".join(bodies), rows)
    assert rows == wanted


def test_rows_that_are_left_out_stay_so():
    finder = JsonFilter([JsonCondition("a = 1")])
    rows = bytearray(b"\0\1\0\1")
    finder.many(ends_of([b'{"a":1}'] * 4), b'{"a":1}' * 4, rows)
    assert rows == b"\0\1\0\1"


@needs_compiled
@pytest.mark.parametrize(
    "expression",
    [
        "a > 1",
        "a = 1 and b = x",
        "a in (1, 2, 3) or not b",
        "a.b[0] <= 1.5",
        "not (a != 'x' and b exists)",
        "3 < @.a",
        "b = x or a ~ y",
    ],
)
def test_plain_bodies_are_decided_by_compiled_code(expression):
    condition = JsonCondition(expression)
    finder = JsonFilter([condition])
    bodies = [b'{"a":5,"b":"x"}', b'{"a":{"b":[1]},"b":"x","c":"\xc3\xa9"}', b'{"a":1.25,"b":"x"}']
    for body in bodies * 20:  # missing names are noted some times, by the other form
        finder(body)
    rows = bytearray(b"\1" * len(bodies))
    finder._plan.test(ends_of(bodies), b"".join(bodies), rows)
    assert Answer.OPEN not in rows
    assert rows == bytes(map(finder, bodies))


def test_large_expressions_are_left_to_the_other_form():
    condition = JsonCondition(" or ".join(f"n{number} = 1" for number in range(100)))
    finder = JsonFilter([condition])
    assert not finder._plan.is_usable
    rows = bytearray(b"\1\1")
    bodies = [b'{"n99":1}', b'{"n100":1}']
    finder.many(ends_of(bodies), b"".join(bodies), rows)
    assert rows == b"\1\0"


@needs_compiled
@pytest.mark.parametrize(
    ("paths", "nodes"),
    [
        (((b"a",),), ()),
        (((b"a",),), ((3, 1, 0, 1, ()),)),
        (((b"a",),), ((3, -1, 0, 1, ()),)),
        (((b"a",),), ((9, 0, 0, 1, ()),)),
        (((b"a",),), ((5, 0, 0, 1, ()),)),
        (((b"a",),), ((2, 0, 0, 1, ()),)),
        (((b"a",),), ((0, 0, 0, 2, ()),)),
        (((b"a",),), ((0, 0, 0, 2, ()), (3, 0, 0, 2, ()))),
        (((b"a",),), ((3, 0, 0, 1, ()), (3, 0, 0, 1, ()))),
        (((b"a",),), ((3, 0, 0, 0, ()),)),
        (([b"a"],), ((3, 0, 0, 1, ()),)),
        (((b"a",),) * 64, ((3, 0, 0, 1, ()),)),
    ],
)
def test_wrong_tables_are_refused(paths, nodes):
    with pytest.raises(ValueError, match=r"condition|path"):
        json_plan.json_tests(paths, nodes, 0, array("i", [0, 2]), b"{}", bytearray(b"\1"))


@needs_compiled
@pytest.mark.parametrize("ends", [[0, 3], [2, 1], [-1, 2], [0], [0, 1, 2]])
def test_wrong_ends_are_refused(ends):
    nodes = ((3, 0, 0, 1, ()),)
    with pytest.raises(ValueError, match="wrong ends"):
        json_plan.json_tests(((b"a",),), nodes, 0, array("i", ends), b"{}", bytearray(b"\1"))


def test_a_plan_with_nothing_to_decide_is_not_used():
    assert not Plan([json_plan.OTHER]).is_usable
