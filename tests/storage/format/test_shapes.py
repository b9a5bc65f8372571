"""Shapes of values that were read from files: what each takes, refuses and names."""

from __future__ import annotations

from typing import Any

import pytest

from storage.format.shapes import (
    MAX_INT,
    MAX_LONG,
    Shape,
    ShapeError,
    anything,
    are_ids,
    check,
    flag,
    is_id,
    items,
    maybe,
    members,
    number,
    one_of,
    rows,
    shown,
    table,
    text,
    whole,
)

TAKEN: list[tuple[Shape, list[Any]]] = [
    (anything, [None, [], "x"]),
    (whole(), [-MAX_LONG - 1, 0, MAX_LONG]),
    (whole(3, 5), [3, 4, 5]),
    (number(0, 1.5), [0, 0.0, 1, 1.5]),
    (text, ["", "x"]),
    (flag, [True, False]),
    (maybe(whole(1)), [None, 1]),
    (one_of("a", 1), ["a", 1]),
    (rows(whole(0)), [[], [0], [1, 2]]),
    (items(whole(0), text), [[0, ""]]),
    (table(whole(0)), [{}, {"x": 0, "": 1}]),
    (table(maybe(whole(0, 9))), [{"x": None}, {"x": None, "y": 9, "z": 0}]),
    (table(whole(0), ids=True), [{}, {"0": 0, "2147483647": 1}]),
    (members({"a": whole(0)}), [{"a": 0}, {"a": 0, "other": None}]),
    (members({}, {"b": text}), [{}, {"b": ""}]),
]
REFUSED: list[tuple[Shape, list[Any]]] = [
    (whole(), [True, False, 1.0, "1", None, [], MAX_LONG + 1, -MAX_LONG - 2]),
    (whole(3, 5), [2, 6]),
    (number(0, 1.5), [-0.1, 1.6, 2, True, "1", None]),
    (text, [None, 1, []]),
    (flag, [0, 1, None, "true"]),
    (maybe(whole(1)), [0, False, "", [], {}]),
    (one_of("a", 1), ["b", 1.0, True, None]),
    (rows(whole(0)), [{}, (0,), "", None, [0, -1], [[0]]]),
    (items(whole(0), text), [[], [0], [0, "", 1], ["", 0], {"0": 0}, [0, None]]),
    (table(whole(0)), [[], None, {"x": -1}, {"x": 0, "y": "z"}, {"x": True}, {"x": 1.0}]),
    (table(maybe(whole(0, 9))), [{"x": None, "y": 10}, {"x": False, "y": None}, {"x": "1"}]),
    (table(whole(0), ids=True), [{"x": 0}, {"-1": 0}, {"2147483648": 0}, {"0": -1}]),
    (members({"a": whole(0)}), [{}, [], None, {"a": -1}]),
    (members({}, {"b": text}), [{"b": 1}, {"b": None}]),
]


@pytest.mark.parametrize(
    ("shape", "value"), [(shape, value) for shape, values in TAKEN for value in values]
)
def test_a_shape_takes_what_it_says(shape: Shape, value: object) -> None:
    check(value, shape)


@pytest.mark.parametrize(
    ("shape", "value"), [(shape, value) for shape, values in REFUSED for value in values]
)
def test_a_shape_refuses_all_else(shape: Shape, value: object) -> None:
    with pytest.raises(ShapeError):
        check(value, shape)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"rows": [{"id": 1}, {"id": -1}]}, "rows[1].id"),
        ({"rows": [{}]}, "rows[0]"),
        ({"rows": {}}, "rows"),
        ({}, ""),
        ({"rows": [], "of": {"x": {"3": [1, "y"]}}}, "of.x.3[1]"),
        ({"rows": [], "of": {"x": {"-3": [1, 2]}}}, "of.x: a name"),
    ],
)
def test_the_sentence_names_the_place(value: object, place: str) -> None:
    shape = members(
        {"rows": rows(members({"id": whole(0)}))},
        {"of": table(table(items(whole(), whole()), ids=True))},
    )
    with pytest.raises(ShapeError) as raised:
        check(value, shape)
    assert raised.value.place == place
    assert str(raised.value).startswith(place or "it has no member rows")


@pytest.mark.parametrize("name", ["0", "7", str(MAX_INT), "0000000001"])
def test_the_number_of_a_queue(name: str) -> None:
    assert is_id(name)


@pytest.mark.parametrize(
    "name", ["", "-1", "+1", " 1", "1.0", "x", "\u0661", str(MAX_INT + 1), "00000000001"]
)
def test_what_is_not_the_number_of_a_queue(name: str) -> None:
    assert not is_id(name)


def test_a_value_is_shown_in_few_characters() -> None:
    assert shown({"a": 1}) == "an object"
    assert shown([1]) == "a list"
    assert shown(10**40) == str(10**40)[:40] + "..."
    assert shown(10**5000) == shown(-(10**41)) == "a huge number"
    assert shown("x" * 38) == '"' + "x" * 38 + '"'
    assert shown("x" * 39) == '"' + "x" * 39 + "..."
    assert shown("\x1b[31m\u20ac") == r'"\u001b[31m\u20ac"'
    assert shown(None) == "null"


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("0", "12"),
        ("2147483647",),
        ("2147483648",),
        ("1", ""),
        ("1", "x"),
        ("\u00b2",),
        ("-1",),
    ],
)
def test_names_are_ids_if_each_is_one(names):
    assert are_ids(names) == all(is_id(name) for name in names)
