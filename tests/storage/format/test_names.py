"""File names."""

from datetime import UTC, timedelta, timezone

import pytest

from storage.format.names import (
    file_name,
    index_file_name,
    is_index_file_name,
    next_index_file_name,
    parse_file_name,
)


@pytest.mark.parametrize("offset", [0, 1, 1 << 30, (1 << 63) - 1])
def test_offsets_come_back_from_file_names(offset: int) -> None:
    name = file_name(offset)
    assert len(name) == 20
    assert parse_file_name(name) == offset


def test_a_negative_offset_has_no_file() -> None:
    with pytest.raises(ValueError, match="-1"):
        file_name(-1)


@pytest.mark.parametrize(
    "name",
    ["", "0", "0000000000000000000", "000000000000000000000", "0000000000000000000a",
     "-0000000000000000001", "99999999999999999999", "0000000000000000000\u0660"],
)  # fmt: skip
def test_other_names_are_no_offsets(name: str) -> None:
    assert parse_file_name(name) is None


def test_an_index_file_is_named_after_the_local_time() -> None:
    assert index_file_name(1700000000123, UTC) == "20231114221320123"
    assert index_file_name(1700000000123, timezone(timedelta(hours=8))) == "20231115061320123"
    assert index_file_name(1700000000007, UTC).endswith("007")
    assert len(index_file_name(1700000000123)) == 17


def test_two_index_files_of_one_millisecond_get_different_names() -> None:
    assert next_index_file_name("20231114221320123") == "20231114221320124"
    assert is_index_file_name("20231114221320123")
    assert not is_index_file_name("20231114221320123.tmp")
