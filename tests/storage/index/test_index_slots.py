"""What a slot of the index names is followed as far as the file's head vouches for it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from storage.format.index_file import IndexHeader, entry_position, slot_position
from storage.format.java_hash import key_hash
from storage.index import reader
from tests.support.compiled import native
from tests.support.hand_made import START_MS, TINY, HandMade


@pytest.mark.conformance("A14")
@pytest.mark.parametrize("form", ["compiled", "pure"])
@pytest.mark.parametrize(("counted", "found"), [(4, 3), (3, 3), (2, 0), (1, 0), (0, 0), (-1, 0)])
@pytest.mark.parametrize("follow_slots", [False, True])
def test_a_slot_that_names_an_entry_above_the_count_is_empty(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    counted: int,
    found: int,
    follow_slots: bool,
) -> None:
    """IndexFile.selectPhyOffset; the count, which begins with 1, is stored last. Where rmqctl's
    writers have the store, readers follow slots whatever is counted."""
    if form == "pure":
        monkeypatch.setattr(native, "compiled", None)
    made = HandMade(TINY)
    for _ in range(3):
        made.put("T", keys=["k"])
    made.write(tmp_path)
    [path] = (tmp_path / "index").iterdir()
    data = bytearray(path.read_bytes())
    slots, entries = TINY.max_hash_slot_num, TINY.max_index_num
    assert struct.unpack_from(">i", data, slot_position(key_hash("T", "k") % slots)) == (3,)
    data[:40] = IndexHeader.unpack_from(bytes(data[:40]))._replace(index_count=counted).pack()
    search = native.compiled.search_index if native.compiled else reader._search
    hits: list[int] = []
    search((bytes(data),), slots, entries, "T", "k", 0, 1 << 60, None, follow_slots, 9, hits)
    assert len(hits) == (3 if follow_slots else found)


FIRST = START_MS + 1000
"""When the first of three messages of ``an_index`` was stored; the others follow each second."""


def an_index(root: Path) -> bytes:
    made = HandMade(TINY)
    for _ in range(3):
        made.put("T", keys=["k"])
    made.write(root)
    [path] = (root / "index").iterdir()
    return path.read_bytes()


@pytest.mark.parametrize("form", ["compiled", "pure"])
@pytest.mark.parametrize(
    ("begin", "end", "below", "found", "older"),
    [
        (0, 1 << 60, None, [2, 1, 0], True),
        (FIRST, 1 << 60, None, [2, 1, 0], True),
        (FIRST + 1, 1 << 60, None, [2, 1], False),
        (FIRST + 2000, FIRST + 2000, None, [2], False),
        (FIRST + 2001, 1 << 60, None, [], False),
        (0, FIRST, None, [0], True),
        (0, FIRST - 1, None, [], True),
        (0, 1 << 60, 2, [1, 0], True),
        (0, 1 << 60, 1, [0], True),
    ],
)
def test_times_include_both_ends_and_a_record_from_below_on_does_not_count(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    begin: int,
    end: int,
    below: int | None,
    found: list[int],
    older: bool,
) -> None:
    if form == "pure":
        monkeypatch.setattr(native, "compiled", None)
    search = native.compiled.search_index if native.compiled else reader._search
    size = 102
    hits: list[int] = []
    limit = None if below is None else below * size
    slots, entries = TINY.max_hash_slot_num, TINY.max_index_num
    goes_on = search(
        (an_index(tmp_path),), slots, entries, "T", "k", begin, end, limit, False, 9, hits
    )
    assert hits == [number * size for number in found]
    assert goes_on is older


@pytest.mark.parametrize("form", ["compiled", "pure"])
@pytest.mark.parametrize("previous", [2, 3, -1])
def test_a_chain_that_does_not_go_back_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, previous: int
) -> None:
    """The second entry leads to itself, forwards, or nowhere."""
    if form == "pure":
        monkeypatch.setattr(native, "compiled", None)
    search = native.compiled.search_index if native.compiled else reader._search
    data = bytearray(an_index(tmp_path))
    slots, entries = TINY.max_hash_slot_num, TINY.max_index_num
    struct.pack_into(">i", data, entry_position(slots, 2) + 16, previous)
    hits: list[int] = []
    search((bytes(data),), slots, entries, "T", "k", 0, 1 << 60, None, False, 9, hits)
    assert hits == [204, 102]
