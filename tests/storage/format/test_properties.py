"""The property text of a record."""

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidMessageError
from storage.format.properties import encode_properties, find_property, parse_properties

plain = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1)
values = st.text(st.characters(exclude_characters="\x02", exclude_categories=["Cs"]), min_size=1)
raw = st.lists(st.sampled_from([b"\x01", b"\x02", b"a", b"KEYS", b"k1", b"\xff", b"\xe4\xb8"])).map(
    b"".join
)


def parse_as_java_does(data: bytes) -> dict[str, str]:
    """MessageDecoder.string2messageProperties of 4.9.1, index by index."""
    text = data.decode("utf-8", "replace")
    properties = {}
    index = 0
    while index < len(text):
        end = text.find("\x02", index)
        end = len(text) if end < 0 else end
        if end - index >= 3:
            middle = text.find("\x01", index)
            if index < middle < end - 1:
                properties[text[index:middle]] = text[middle + 1 : end]
        index = end + 1
    return properties


@given(st.dictionaries(plain, values))
@pytest.mark.slow
def test_what_is_encoded_is_parsed_again(properties: dict[str, str]) -> None:
    data = encode_properties(properties)
    assert parse_properties(data) == properties
    assert not data.endswith(b"\x02")


@given(raw)
def test_any_bytes_are_parsed_as_java_parses_them(data: bytes) -> None:
    assert parse_properties(data) == parse_as_java_does(data)


@given(raw, st.sampled_from(["KEYS", "a", "k1", "KEYSa"]))
def test_one_property_is_found_as_parsing_finds_it(data: bytes, name: str) -> None:
    assert find_property(data, name) == parse_properties(data).get(name)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", {}),
        (b"a\x01", {}),
        (b"\x01b", {}),
        (b"ab", {}),
        (b"a\x01b\x02", {"a": "b"}),
        (b"a\x01b\x01c", {"a": "b\x01c"}),
        (b"a\x01b\x02a\x01c", {"a": "c"}),
        (b"a\x01b\x02a\x01", {"a": "b"}),
        (b"x\x01y\x02a\x01b\x02a\x01\x02a\x01", {"x": "y", "a": "b"}),
        (b"a\x01vCLUSTER\x01x", {"a": "vCLUSTER\x01x"}),
        (b"\x02a\x01b", {"a": "b"}),
        (b"\x02a\x01b\x02a\x01", {"a": "b"}),
        (b"a\x01b\x02x\x01y\x02z\x01w", {"a": "b", "x": "y", "z": "w"}),
        (b"a\x01\xff", {"a": "\ufffd"}),
        (b"x\x01y\x02a\x01\xff\x02", {"x": "y", "a": "\ufffd"}),
    ],
)
def test_odd_items(data: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(data) == expected
    assert find_property(data, "a") == expected.get("a")


@pytest.mark.parametrize(
    "properties",
    [{"a\x01b": "c"}, {"a\x02b": "c"}, {"a": "b\x02c"}, {"x": "1", "a": "b\x02c\x01d"}],
)
def test_a_separator_where_it_would_divide_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidMessageError, match=r"U\+000[12]"):
        encode_properties(properties)


def test_items_that_no_reader_would_see_are_left_out() -> None:
    assert encode_properties({"": "x", "a": "", "b": "c"}) == b"b\x01c"
    assert encode_properties({}) == b""
