"""File names."""

from datetime import UTC, timedelta, timezone

import pytest

from storage.format import names
from storage.format.names import (
    file_name,
    index_file_name,
    is_index_file_name,
    next_index_file_name,
    parse_file_name,
)


def test_files_and_folders_have_rocketmqs_names() -> None:
    folders = (names.COMMITLOG, names.CONSUMEQUEUE, names.CONSUMEQUEUE_EXT, names.INDEX)
    assert folders == ("commitlog", "consumequeue", "consumequeue_ext", "index")
    files = (names.CONFIG, names.CHECKPOINT, names.ABORT, names.LOCK)
    assert files == ("config", "checkpoint", "abort", "lock")
    assert (names.BATCHCONSUMEQUEUE, names.DLEDGER) == ("batchconsumequeue", "dledger-")
    ours = (names.OURS, names.MEMBERS_FOLDER, names.SINK_FOLDER, names.SNAPSHOT_MANIFEST)
    assert ours == ("rmqctl", "members", "sink", "manifest.json")


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
     "-0000000000000000001", "99999999999999999999",
     "09223372036854775808", "0000000000000000000\u0660"],
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


@pytest.mark.parametrize(
    ("created_ms", "name"),
    [
        (0, "19700101000000000"),
        (-5, "19700101000000000"),
        (1, "19700101000000001"),
        (253_402_041_600_000, "99991229000000000"),
        (1 << 62, "99991229000000000"),
    ],
)
def test_the_time_of_a_damaged_record_makes_a_name_too(created_ms: int, name: str) -> None:
    assert index_file_name(created_ms, UTC) == name


def test_the_next_name_has_as_many_digits() -> None:
    assert next_index_file_name("00000000000000099") == "00000000000000100"


@pytest.mark.parametrize("name", ["", "2023111422132012x", "2023\u0661"])
def test_java_loads_no_index_file_whose_name_is_no_number(name: str) -> None:
    assert not is_index_file_name(name)
