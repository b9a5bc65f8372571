"""JSON as RFC 8259 has it: nothing that Python takes besides, and a limit for depth and digits."""

from __future__ import annotations

import time

import pytest

from storage.format.errors import JsonError
from storage.format.strict_json import MAX_DEPTH, is_deeper, loads_strict, name_given_twice


def nested(levels: int, *, lists: bool) -> str:
    return "[" * levels + "]" * levels if lists else '{"a":' * levels + "0" + "}" * levels


@pytest.mark.parametrize("data", ["1", b"1", '{"a": [1, 2.5, "x", null, true]}', "1e308", "-0"])
def test_a_value_is_read(data: str | bytes) -> None:
    assert loads_strict(data) is not None


@pytest.mark.parametrize(
    "data", ["", "{", "[1,]", "NaN", "Infinity", "-Infinity", "[NaN]", "1e400", "-1e400", "[1] 2"]
)
def test_what_is_no_json_is_refused(data: str) -> None:
    with pytest.raises(JsonError):
        loads_strict(data)


def test_bytes_that_are_no_text_are_told_with_their_place() -> None:
    with pytest.raises(JsonError) as raised:
        loads_strict(b'{"a": "\xff"}')
    assert raised.value.position == 7


def test_the_place_of_a_mistake_is_told() -> None:
    with pytest.raises(JsonError) as raised:
        loads_strict('{"a": 1, }')
    assert raised.value.position > 6


def test_a_number_of_too_many_digits_is_refused() -> None:
    with pytest.raises(JsonError):
        loads_strict("1" * 100_000)


@pytest.mark.parametrize("lists", [True, False])
def test_values_are_nested_up_to_the_limit(lists: bool) -> None:
    assert loads_strict(nested(MAX_DEPTH, lists=lists)) is not None
    with pytest.raises(JsonError, match=f"deeper than {MAX_DEPTH} levels"):
        loads_strict(nested(MAX_DEPTH + 1, lists=lists))
    assert loads_strict(nested(3, lists=lists), max_depth=3) is not None
    with pytest.raises(JsonError, match="deeper"):
        loads_strict(nested(4, lists=lists), max_depth=3)
    with pytest.raises(JsonError, match="nested"):
        loads_strict(nested(200_000, lists=lists))


def test_many_values_side_by_side_are_not_deep() -> None:
    wide = "[" + ",".join(["[]", "{}"] * 200) + "]"
    assert len(loads_strict(wide)) == 400
    assert not is_deeper(loads_strict(wide), 2)
    assert is_deeper(loads_strict(wide), 1)
    assert not is_deeper(1, 0)
    assert is_deeper([], 0)


@pytest.mark.parametrize("text", [r'"\ud800"', r'{"\udc80": 1}', r'[["\udfff x"]]'])
def test_half_of_a_surrogate_pair_is_no_text(text: str) -> None:
    with pytest.raises(JsonError, match="half of a surrogate pair"):
        loads_strict(text.encode())
    assert loads_strict(rb'"\ud83d\ude00 \u00e9"') == "\U0001f600 \u00e9"


@pytest.mark.slow
def test_a_name_given_twice_is_found_among_many_at_once() -> None:
    names = [f"a{number}" for number in range(300_000)]
    text = "{" + ",".join(f'"{name}":1' for name in [*names, names[-1]]) + "}"
    began = time.process_time()
    with pytest.raises(JsonError, match="it has the key 'a299999' twice"):
        loads_strict(text)
    assert time.process_time() - began < 20, "half an hour where each name is compared with all"
    assert name_given_twice(names) is None
    assert name_given_twice(["b", "a", "c", "a", "b"]) == "b"


def test_bytes_that_are_no_text_stay_in_given_text() -> None:
    text = b'["\\u00e9 \xff"]'.decode("utf-8", "surrogateescape")
    assert loads_strict(text) == ["\u00e9 \udcff"]
    with pytest.raises(JsonError, match="half of a surrogate pair"):
        loads_strict(r'"\ud800"')
