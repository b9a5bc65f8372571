"""Java's hashCode without its loop."""

import numpy as np
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from storage.format.column_pure import index_hashes_of_rows
from storage.format.java_hash import java_hash, key_hash, tags_code, unsigned_java_hash

texts = st.text(st.characters(), max_size=40) | st.text(st.characters(max_codepoint=255))


def naive(text: str) -> int:
    """String.hashCode as its documentation has it, over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for i in range(0, len(units), 2):
        result = (31 * result + int.from_bytes(units[i : i + 2], "big")) % (1 << 32)
    return result - (1 << 32) if result >= 1 << 31 else result


@given(texts)
def test_hash_is_that_of_the_naive_loop(text: str) -> None:
    assert java_hash(text) == naive(text)


def test_half_a_pair_is_a_unit_of_its_own() -> None:
    assert java_hash("\ud800") == 0xD800
    assert java_hash("a\udfff") == 31 * ord("a") + 0xDFFF


@given(st.integers(0, 2000), st.characters(max_codepoint=0x2FF))
def test_long_texts_are_hashed_block_by_block(length: int, char: str) -> None:
    text = (char + "abc") * length
    assert java_hash(text) == naive(text)


@given(texts, texts)
def test_an_index_hash_is_the_absolute_value_and_never_negative(topic: str, key: str) -> None:
    expected = abs(naive(f"{topic}#{key}"))
    assert key_hash(topic, key) == (0 if expected == 1 << 31 else expected)


def test_the_smallest_int_becomes_zero() -> None:
    # A text of the form topic#key whose hash is -2^31, found by search.
    topic, key = "t", smallest_int_key("t#")
    assert naive(f"{topic}#{key}") == -(1 << 31)
    assert key_hash(topic, key) == 0
    assert index_hashes_of_rows(topic, rows([key])).tolist() == [0]


def smallest_int_key(prefix: str) -> str:
    """Find a key of six letters after ``prefix``: digits of base 31 between 'A' and '`'."""
    wanted = ((1 << 31) - unsigned_java_hash(prefix + "A" * 7)) % (1 << 32)
    digits = []
    for _ in range(7):
        wanted, digit = divmod(wanted, 31)
        digits.append(digit)
    return "".join(chr(ord("A") + digit) for digit in reversed(digits))


def test_no_tags_and_empty_tags_have_the_code_zero() -> None:
    assert tags_code(None) == tags_code("") == 0


@given(st.integers(1, 256), st.integers(1, 5), texts)
def test_equally_long_keys_are_hashed_as_a_matrix(length: int, count: int, topic: str) -> None:
    keys = [chr(65 + i) * length for i in range(count)]
    assert index_hashes_of_rows(topic, rows(keys)).tolist() == [key_hash(topic, k) for k in keys]


def rows(keys: list[str]) -> NDArray[np.uint8]:
    return np.frombuffer("".join(keys).encode(), np.uint8).reshape(len(keys), -1)
