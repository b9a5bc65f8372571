from contextlib import suppress
from datetime import UTC
from typing import NamedTuple

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


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_a_ValueError(text):
    with suppress(ValueError):
        holds(text)
