"""Findings that the matrix of damage does not make, each with its place and its severity."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from storage.format.index_file import entry_position
from storage.readonly import StoreView
from storage.tools.fsck import Code, Finding, Severity, fsck
from tests.support.compiled import native
from tests.support.hand_made import TINY, HandMade


def findings(root: Path) -> list[Finding]:
    with StoreView.open(root, TINY) as view:
        return fsck(view).findings


def two_files(root: Path) -> HandMade:
    made = HandMade(TINY)
    while made.log_end <= 1024:
        made.put("T", keys=["k"])
    made.write(root)
    assert findings(root) == []
    return made


@pytest.mark.parametrize("by", [-1, 1, 100])
def test_a_blank_record_with_a_wrong_length_is_a_warning(tmp_path: Path, by: int) -> None:
    made = two_files(tmp_path)
    last = next(m for m in reversed(made.messages) if m.commitlog_offset < 1024)
    at = last.commitlog_offset + last.size
    with (tmp_path / "commitlog/00000000000000000000").open("r+b") as file:
        file.seek(at)
        file.write(struct.pack(">i", 1024 - at + by))
    [found] = findings(tmp_path)
    assert found[:4] == (
        Code.BLANK_WRONG,
        Severity.WARNING,
        "commitlog/00000000000000000000",
        at,
    )
    assert f"{1024 - at + by} bytes are left, there are {1024 - at}" in found.what


@pytest.mark.parametrize(
    ("place", "code", "severity"),
    [
        ("inside a record", Code.UNIT_WITHOUT_RECORD, Severity.ERROR),
        ("at another record", Code.UNIT_WRONG, Severity.WARNING),
        ("at the last record", Code.UNIT_WRONG, Severity.WARNING),
        ("behind the end", Code.UNIT_BEHIND_END, Severity.WARNING),
    ],
)
def test_a_unit_that_no_record_has_is_judged_by_where_it_points(
    tmp_path: Path, place: str, code: Code, severity: Severity
) -> None:
    made = HandMade(TINY)
    for _ in range(3):
        made.put("T")
    second, third = made.messages[1:]
    where = {
        "inside a record": second.commitlog_offset + 8,
        "at another record": second.commitlog_offset,
        "at the last record": third.commitlog_offset,
        "behind the end": third.commitlog_offset + third.size,
    }[place]
    made.add_unit("T", 0, where, second.size, 0)
    made.write(tmp_path)
    found = [one for one in findings(tmp_path) if one.code is code]
    assert [one[1:4] for one in found] == [(severity, "consumequeue/T/0/00000000000000000000", 60)]
    assert "offset 3" in found[0].what


@pytest.mark.parametrize(
    ("second", "broken"), [(1, 2), (0, 1), (2, 2)], ids=["twice", "once", "by itself"]
)
@pytest.mark.parametrize("form", ["compiled", "pure"])
def test_an_entry_of_the_index_that_is_passed_is_told_and_one_that_is_reached_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, second: int, broken: int
) -> None:
    """Three entries of one slot; the third leads to the first, past the second."""
    if form == "pure":
        monkeypatch.setattr(native, "compiled", None)
    made = HandMade(TINY)
    for _ in range(3):
        made.put("T", keys=["k"])
    made.write(tmp_path)
    assert findings(tmp_path) == []
    [path] = (tmp_path / "index").iterdir()
    with path.open("r+b") as file:
        file.seek(entry_position(TINY.max_hash_slot_num, 3) + 16)
        assert file.read(4) == struct.pack(">i", 2)
        file.seek(-4, 1)
        file.write(struct.pack(">i", 1))
        file.seek(entry_position(TINY.max_hash_slot_num, 2) + 16)
        file.write(struct.pack(">i", second))
    [found] = findings(tmp_path)
    assert found.code is Code.INDEX_CHAIN_BROKEN
    first_broken = 1 if second == 1 else 2
    assert found.position == entry_position(TINY.max_hash_slot_num, first_broken)
    assert found.what.startswith(f"{broken} links")
