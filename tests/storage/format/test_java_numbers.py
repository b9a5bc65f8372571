"""Numbers as fastjson gives them to an int and to a long of Java."""

from __future__ import annotations

import pytest

from storage.format.java_numbers import java_int, java_long
from storage.format.shapes import MAX_INT, MAX_LONG


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0),
        (True, 1),
        (1.9, 1),
        (-1.9, -1),
        ("7", 7),
        (" +7 ", 7),
        ("-7", -7),
        (MAX_INT, MAX_INT),
        (-MAX_INT - 1, -MAX_INT - 1),
    ],
)
def test_a_value_that_both_hold(value: object, number: int) -> None:
    assert java_int(value) == java_long(value) == number


@pytest.mark.parametrize("value", [MAX_INT + 1, -MAX_INT - 2, str(MAX_INT + 1), 1e10])
def test_a_value_that_only_a_long_holds(value: object) -> None:
    with pytest.raises(ValueError, match="no number that an int holds"):
        java_int(value)
    assert abs(java_long(value)) > MAX_INT


@pytest.mark.parametrize("value", [MAX_LONG, -MAX_LONG - 1, str(MAX_LONG)])
def test_the_ends_of_a_long(value: object) -> None:
    assert java_long(value) in {MAX_LONG, -MAX_LONG - 1}


@pytest.mark.parametrize(
    "value",
    [
        MAX_LONG + 1,
        -MAX_LONG - 2,
        1e300,
        "",
        "x",
        "1.5",
        "0x1",
        "1_0",
        "\u0661",
        "9" * 20,
        None,
        [],
        {},
    ],
)
def test_what_is_no_number_of_either(value: object) -> None:
    for convert in (java_int, java_long):
        with pytest.raises(ValueError, match="no number that"):
            convert(value)
