"""SQL92 expressions: what they read, what they refuse, and which messages they match."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, strategies as st

from broker.errors import SubscriptionParseError
from broker.filter.expression import EvaluationError, compare, matches, to_number
from broker.filter.parser import compile_sql92

pytestmark = pytest.mark.conformance("D4")


def fits(expression: str, **properties: str) -> bool:
    return matches(compile_sql92(expression), properties)


def truth(expression: str, **properties: str) -> bool | None:
    return compile_sql92(expression).evaluate(properties)


@pytest.mark.parametrize(
    ("expression", "properties", "expected"),
    [
        ("TAGS in ('a', 'b') AND price > 3", {"TAGS": "a", "price": "4"}, True),
        ("TAGS in ('a', 'b') AND price > 3", {"TAGS": "c", "price": "4"}, False),
        ("TAGS in ('a', 'b') AND price > 3", {"TAGS": "a", "price": "3"}, False),
        ("a = 1", {"a": "1"}, True),
        ("a = 1", {"a": "+1"}, True),
        ("a = 1", {"a": "01"}, True),
        ("a = '1'", {"a": "01"}, False),
        ("a <> 1", {"a": "2"}, True),
        ("a = -5", {"a": "-5"}, True),
        ("a = - - 5", {"a": "5"}, True),
        ("a = +5", {"a": "5"}, True),
        ("a > 3.5", {"a": "3.75"}, True),
        ("a >= .5E1", {"a": "5"}, True),
        ("a < 5.", {"a": "4.9"}, True),
        ("a <= 2E0", {"a": "2.0"}, True),
        ("a = 12345678901L", {"a": "12345678901"}, True),
        ("a BETWEEN 1 AND 3", {"a": "3"}, True),
        ("a BETWEEN 1 AND 3", {"a": "4"}, False),
        ("a not between 1 and 3", {"a": "4"}, True),
        ("a NOT BETWEEN 1 AND 3", {"a": "2"}, False),
        ("a NOT IN ('x')", {"a": "y"}, True),
        ("a IN ('it''s')", {"a": "it's"}, True),
        ("a IS NULL", {}, True),
        ("a IS NULL", {"a": "x"}, False),
        ("a is not null", {"a": "x"}, True),
        ("a = true", {"a": "TRUE"}, True),
        ("a = FALSE", {"a": "anything"}, True),
        ("a < b", {"a": "9", "b": "10"}, True),
        ("a = b", {"a": "x", "b": "x"}, True),
        ("(a = 1 OR b = 1) AND c = 1", {"b": "1", "c": "1"}, True),
        ("a = 1 OR b = 1 AND c = 1", {"a": "1"}, True),
        ("NOT (a = 1)", {"a": "2"}, True),
        ("$x_1 = 'y' -- a comment\n AND /* one ** more */ TRUE", {"$x_1": "y"}, True),
        ("TRUE", {}, True),
        ("NULL", {}, False),
        ("a = '\u4e2d\u6587'", {"a": "\u4e2d\u6587"}, True),
    ],
)
def test_an_expression_matches_as_sql_has_it(expression, properties, expected):
    assert fits(expression, **properties) is expected


def test_missing_properties_are_null_and_logic_has_three_values():
    assert truth("a = 1") is None
    assert truth("a > 1") is None
    assert truth("a IN ('x')") is None
    assert truth("NOT (a = 1)") is None
    assert truth("a = 1 AND FALSE") is False
    assert truth("FALSE AND a = 1") is False
    assert truth("a = 1 AND TRUE") is None
    assert truth("a = 1 OR TRUE") is True
    assert truth("a = 1 OR FALSE") is None
    assert truth("a <> 1") is None
    assert not fits("a = 1 OR FALSE")
    assert truth("a = b") is True  # RocketMQ: two properties that are not there
    assert truth("a = b", a="1") is False
    assert truth("a = b", b="1") is None


@pytest.mark.parametrize(
    ("expression", "properties"),
    [
        ("a > 3", {"a": "3.5"}),
        ("a > 3", {"a": " 4"}),
        ("a > 3", {"a": "4_0"}),
        ("a = 3", {"a": "three"}),
        ("a > 3", {"a": "3000000000"}),  # beside an Integer, an Integer
        ("a < b", {"a": "x", "b": "y"}),
        ("TRUE = a", {"a": "true"}),  # RocketMQ casts the wrong side
        ("a > 3.0", {"a": "0x10p0x"}),
    ],
)
def test_values_that_do_not_convert_match_nothing_nor_does_their_negation(expression, properties):
    assert not fits(expression, **properties)
    assert not fits(f"NOT ({expression})", **properties)


def test_a_property_alone_is_never_true():
    assert truth("a", a="true") is False
    assert truth("a") is None
    assert truth("NOT a", a="true") is True


def test_not_binds_closer_than_a_comparison():
    assert not fits("NOT a = 1", a="2")
    with pytest.raises(SubscriptionParseError, match="only a property can be IN"):
        compile_sql92("NOT a IN ('x')")


def test_doubles_are_ordered_as_java_orders_them():
    assert fits("a > 1.5", a="NaN")
    assert fits("a > 1.5", a="Infinity")
    assert fits("a < 1.5", a="-1e400")
    assert fits("a = b AND a > 1.5", a="2f", b="2f")
    assert truth("a < b", a="-0.0", b="0.0") is True
    assert truth("a < b", a="NaN", b="NaN") is False


@pytest.mark.parametrize(
    ("expression", "place", "what"),
    [
        ("", 1, "the end where a property"),
        ("a = ", 5, "the end where a property"),
        ("a = 1 b", 7, "'b' where AND, OR or the end"),
        ("a == 1", 4, "'=' where a property"),
        ("a = 'x", 5, "without its closing"),
        ("a # 1", 3, "'#' belongs to no word"),
        ("a LIKE 'x'", 3, "'LIKE' where AND, OR or the end"),
        ("a + 1 = 2", 3, "where AND, OR or the end"),
        ("a IN (1)", 7, "'1' where a string"),
        ("a IN ()", 7, "')' where a string"),
        ("a IN ('x'", 10, "the end where ) belongs"),
        ("3 IN ('x')", 1, "only a property"),
        ("a > 'x'", 5, "cannot be compared by >"),
        ("TRUE < 3", 1, "cannot be compared by <"),
        ("a > 3 > 4", 1, "cannot be compared by >"),
        ("a BETWEEN 3 AND 1", 11, "is more than"),
        ("a BETWEEN NULL AND 1", 11, "cannot have NULL"),
        ("a BETWEEN 'x' AND 1", 11, "is no whole number"),
        ("a = NULL", 5, "IS NULL"),
        ("NULL = a", 1, "IS NULL"),
        ("TRUE = 3", 1, "cannot be compared with"),
        ("a NOT 3", 7, "BETWEEN or IN"),
        ("a IS 3", 6, "where NULL belongs"),
        ("3", 1, "neither true nor false"),
        ("a = 1 AND 'x'", 11, "neither true nor false"),
        ("a = 0.0", 5, "out of range"),
        ("a = 1E400", 5, "out of range"),
        ("a = 9223372036854775808", 5, "64 bits"),
        ("a = 007", 6, "where AND, OR or the end"),
        ("(a = 1", 7, "the end where ) belongs"),
        ("(" * 101 + "TRUE" + ")" * 101, 101, "nested too deeply"),
        ("\u00e9 = 1", 1, "belongs to no word"),
    ],
)
def test_what_can_not_be_read_is_refused_and_the_place_is_named(expression, place, what):
    with pytest.raises(SubscriptionParseError, match=re.escape(what)) as caught:
        compile_sql92(expression)
    assert f"at character {place} of" in str(caught.value)


def test_the_same_expression_is_read_once():
    assert compile_sql92("a = 1 AND b = 2") is compile_sql92("a = 1 AND b = 2")


@given(st.text(max_size=40))
@pytest.mark.slow
def test_any_text_is_read_or_refused(text):
    try:
        condition = compile_sql92(text)
    except SubscriptionParseError:
        return
    matches(condition, {"a": "1"})


_NAMES = st.sampled_from(["a", "b", "c"])
_ATOMS = st.one_of(
    st.builds(lambda name, number: f"{name} = {number}", _NAMES, st.integers(0, 3)),
    st.builds(lambda name, number: f"{name} > {number}", _NAMES, st.integers(0, 3)),
    st.builds(lambda name: f"{name} IS NULL", _NAMES),
    st.just("TRUE"),
)
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.builds(lambda left, right: f"({left} AND {right})", inner, inner),
        st.builds(lambda left, right: f"({left} OR {right})", inner, inner),
        st.builds(lambda operand: f"(NOT ({operand}))", inner),
    ),
    max_leaves=8,
)


@given(_EXPRESSIONS, st.dictionaries(_NAMES, st.integers(0, 3).map(str)))
@pytest.mark.slow
def test_logic_agrees_with_sqlite(expression, properties):
    import sqlite3

    known = ", ".join(
        f"{properties[name]} AS {name}" if name in properties else f"NULL AS {name}"
        for name in "abc"
    )
    database = sqlite3.connect(":memory:")
    try:
        [value] = database.execute(f"SELECT {expression} FROM (SELECT {known})").fetchone()
    finally:
        database.close()
    found = compile_sql92(expression).evaluate(properties)
    assert found == (None if value is None else bool(value))


@pytest.mark.slow
@pytest.mark.parametrize("word", ["OR", "AND"])
def test_a_chain_of_thousands_of_conditions_is_read_and_evaluated(word):
    condition = compile_sql92(f" {word} ".join(f"n = {number}" for number in range(5000)))
    assert matches(condition, {"n": "4999"}) is (word == "OR")
    assert not matches(condition, {"n": "5000"})


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("(" * 5000 + "a = 1" + ")" * 5000, "nested too deeply"),
        ("NOT " * 5000 + "a = 1", "nested too deeply"),
        ("a" + " = b" * 5000, "nested too deeply"),
        ("a" + " IS NULL" * 5000, "nested too deeply"),
        ("a = " + "- " * 5000 + "1", "nested too deeply"),
        (f"a = {'9' * 5000}", "more than 64 bits"),
        (f"a = {'9' * 5000}L", "more than 64 bits"),
        (f"a = {'9' * 5000}.0", "out of range"),
        ("a = 1 " + "x" * 100_000, "AND, OR or the end"),
    ],
)
def test_expressions_without_measure_are_refused_in_a_short_sentence(expression, what):
    with pytest.raises(SubscriptionParseError, match=what) as refused:
        compile_sql92(expression)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    "value", ["9" * 30_000, "-" + "9" * 5000, "9" * 30_000 + "x", "9" * 30_000 + "."]
)
def test_a_property_of_thousands_of_digits_is_out_of_range(value):
    assert not matches(compile_sql92("a = 1 OR a < 0"), {"a": value})
    assert not matches(compile_sql92("a = 1.5"), {"a": value})


def test_leading_zeros_do_not_count():
    assert matches(compile_sql92("a = 7"), {"a": "0" * 5000 + "7"})
    assert matches(compile_sql92("a = -7"), {"a": "-" + "0" * 5000 + "7"})
    assert matches(compile_sql92("a = 0"), {"a": "0" * 5000})


@pytest.mark.parametrize(
    ("left", "right", "sign"),
    [
        (True, True, 0),
        (True, False, 1),
        (False, True, -1),
        (True, 1, -1),
        (False, 0.5, -1),
        (1, True, -1),
        ("TRUE", True, 0),
        ("x", True, -1),
        ("x", False, 0),
        ("true", False, 1),
        ("a", "b", -1),
        ("b", "a", 1),
        ("5", 5, 0),
        (5, "6", -1),
        ("7", 6.5, 1),
        (5.0, "5", 0),
        (5, 5.0, 0),
        (0.0, 0.0, 0),
        (-0.0, 0.0, -1),
        (0, -0.0, 1),
        (-0.0, -0.0, 0),
        (math.nan, 1, 1),
        (1, math.nan, -1),
        (math.nan, math.nan, 0),
    ],
)
def test_values_are_compared_as_java_compares_them(left, right, sign):
    assert compare(left, right) == sign


def test_a_boolean_beside_a_text_is_no_comparison():
    with pytest.raises(EvaluationError, match="a boolean cannot be compared with 'true'"):
        compare(True, "true")


INT, LONG = 2_147_483_647, 9_223_372_036_854_775_807


@pytest.mark.parametrize("like", [0, INT, -INT - 1])
def test_beside_an_int_a_text_is_an_int(like):
    assert to_number(str(INT), like) == INT
    assert to_number(str(-INT - 1), like) == -INT - 1
    for number in (INT + 1, -INT - 2, LONG):
        with pytest.raises(EvaluationError, match="is out of range beside"):
            to_number(str(number), like)


@pytest.mark.parametrize(
    ("expression", "value", "expected"),
    [
        ("a > -2147483648", "3000000000", True),  # RocketMQ negates the Long 2147483648
        ("a > -2147483648", "-3000000000", False),
        ("a > - - -2147483648", "3000000000", True),
        ("a BETWEEN -2147483648 AND 3000000001", "3000000000", True),
        ("a > -2147483647", "3000000000", False),  # beside an Integer
        ("a = -2147483648", "-2147483648", True),
    ],
)
def test_the_smallest_integer_is_a_long_in_an_expression(expression, value, expected):
    assert fits(expression, a=value) is expected


@pytest.mark.parametrize("like", [INT + 1, -INT - 2, LONG])
def test_beside_a_long_a_text_is_a_long(like):
    assert to_number(str(LONG), like) == LONG
    assert to_number(f"+00{LONG}", like) == LONG
    assert to_number(str(-LONG - 1), like) == -LONG - 1
    for number in (LONG + 1, -LONG - 2, 10**19):
        with pytest.raises(EvaluationError, match="out of range beside"):
            to_number(str(number), like)


def test_a_text_is_a_number_only_as_a_whole():
    assert (to_number("-7", 1), to_number("+7", 1), to_number("7d", 1.0)) == (-7, 7, 7.0)
    for text in ("", "-", "7x", "1.5", "\u0661x", "--1"):
        with pytest.raises(EvaluationError, match="is no whole number"):
            to_number(text, 1)
    for text in ("", "x", "1ff", "f"):
        with pytest.raises(EvaluationError, match="is no number"):
            to_number(text, 1.5)
