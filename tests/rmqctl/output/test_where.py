from contextlib import suppress
from datetime import UTC
from typing import Any, NamedTuple

import pytest
from hypothesis import given, strategies as st

from rmqctl.output.fields import fields_of
from rmqctl.output.where import Where

NOW = 1_767_225_600_000


class Row(NamedTuple):
    group: str
    lag: int | None
    lag_bytes: int
    age_ms: int
    store_timestamp: int
    keys: list[str]
    properties: dict[str, str]
    java_locked: bool


ROW = Row("orders", 1500, 10 << 20, 7_200_000, NOW - 60_000, ["a", "b"], {"color": "red"}, True)
UNKNOWN = ROW._replace(lag=None)


def holds(text, row=ROW):
    return Where(text, fields_of(Row), NOW, UTC).parse()(row._asdict())


@pytest.mark.parametrize(
    "text",
    [
        "lag > 1000",
        "lag>1000",
        "lag = 1500 and group = orders",
        "group == 'orders'",
        'group != "x"',
        "group ~ '^ord'",
        "group !~ x",
        "lag_bytes >= 10M",
        "lag_bytes = 10485760",
        "age_ms > 1h",
        "age_ms = 7200000",
        "store_timestamp > -1h",
        "store_timestamp < 2026-01-01",
        "keys = b",
        "keys ~ ^a$",
        "properties.color = red",
        "properties.size = null",
        "java_locked",
        "java_locked = true",
        "not lag < 1000",
        "lag < 10 or group = orders",
        "(lag < 10 or group = orders) and age_ms > 1s",
        "lag < 10 || group = orders && age_ms > 1s",
        "! lag = 3",
        "lag != null",
        "lag ~ ^15",
        "LAG > 1",
        "lag-bytes > 1",
    ],
)
def test_expressions_that_hold(text):
    assert holds(text)


@pytest.mark.parametrize("text", ["lag > 2000", "group ~ ^x", "keys = c", "not java_locked"])
def test_expressions_that_do_not_hold(text):
    assert not holds(text)


@pytest.mark.parametrize("text", ["lag > 0", "lag < 0", "lag != 3", "lag = 0", "lag ~ ."])
def test_unknown_compares_with_nothing(text):
    assert not holds(text, UNKNOWN)


def test_unknown_can_be_asked_for():
    assert holds("lag = null", UNKNOWN)
    assert not holds("lag != null", UNKNOWN)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("lagg > 1", "did you mean 'lag'"),
        ("lag >", "expected a value at the end"),
        ("lag > 1 group", "unexpected"),
        ("(lag > 1", "missing )"),
        ("lag > many", "not a number"),
        ("age_ms > soon", "not a duration"),
        ("store_timestamp > soon", "not a time"),
        ("group ~ '('", "regular expression"),
        ("java_locked = perhaps", "true or false"),
        ("lag > null", "only be compared"),
        ("group.name = x", "no members"),
        ("", "expected a field at the end"),
        ("lag > 'a", "cannot read"),
        ("= 1", "not a field"),
    ],
)
def test_malformed_expressions_say_what_is_wrong(text, hint):
    with pytest.raises(ValueError, match="--where") as caught:
        holds(text)
    assert hint in str(caught.value)


class Loose(NamedTuple):
    new: Any
    writers: list[Any]
    properties: dict[str, str]


SETTINGS = {
    "perm": 6,
    "rate": 0.5,
    "order": True,
    "name": "10",
    "bytes": 10 << 20,
    "pause_ms": 7_200_000,
    "at_timestamp": NOW - 60_000,
    "ids": [9, 11],
    "unknown": None,
}
LOOSE = Loose(SETTINGS, [4711, 12], {"count": "10", "wait_ms": "soon"})


def loosely(text, row=LOOSE):
    return Where(text, fields_of(Loose), NOW, UTC).parse()(row._asdict())


@pytest.mark.parametrize(
    "text",
    [
        "new.perm < 10",
        "new.perm = 6.0",
        "new.perm in (4, 6)",
        "new.perm != six",
        "new.rate < 1",
        "new.order = true",
        "new.order ~ true",
        "new.name < 9",  # a text is compared as one
        "new.bytes >= 10M",
        "new.bytes > 9999999",
        "new.pause_ms > 1h",
        "new.pause_ms > 999",
        "new.at_timestamp > -1h",
        "new.at_timestamp > 999",
        "new.ids = 11",
        "new.ids < 10",
        "new.unknown = null",
        "new.missing = null",
        "new ~ '\"perm\":6'",
        "writers = 4711",
        "writers < 100",
        "writers ~ ^47",
        "properties.count = 10",
        "properties.wait_ms = soon",
    ],
)
def test_members_are_compared_by_the_type_of_their_values(text):
    assert loosely(text)


@pytest.mark.parametrize(
    "text",
    [
        "new.perm > 10",
        "new.perm > five",
        "new.perm = six",
        "new.missing != 1",
        "new > 1",
        "writers = 47",
    ],
)
def test_members_of_another_value_do_not_hold(text):
    assert not loosely(text)


@pytest.mark.parametrize("new", [24, 0, True, "text", [], [{"perm": 6}], (1, "a")])
def test_what_is_no_object_has_no_members(new):
    row = LOOSE._replace(new=new)
    assert loosely("new.perm = null", row)
    assert not loosely("new.perm = 6", row)


@pytest.mark.parametrize(("new", "held"), [(24, True), (3, False), ("24", True), ([9, 24], True)])
def test_a_value_of_any_type_is_compared_by_its_type(new, held):
    row = LOOSE._replace(new=new)
    assert loosely("new > 10", row) == loosely("new = 24", row) == held


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("a"), inner),
        max_leaves=5,
    ),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "~", "!~"]),
    st.sampled_from(["3", "x", "''", "2.5", "true", "1h", "10M"]),
)
def test_any_value_can_be_compared(new, operator, text):
    row = LOOSE._replace(new=new)
    for name in ("new", "new.a"):
        assert loosely(f"{name} {operator} {text}", row) in (True, False)


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_a_ValueError(text):
    with suppress(ValueError):
        holds(text)
