"""What a slot of the index names is followed as far as the file's head vouches for it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from storage import native
from storage.format.index import IndexHeader, slot_position
from storage.format.java_hash import key_hash
from storage.reading import index_reader
from tests.support.hand_made import TINY, HandMade


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
    """IndexFile.selectPhyOffset; the count, which begins with 1, is stored last. Who knows that
    rmqctl's writers have the store follows slots whatever is counted."""
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
    search = native.compiled.search_index if native.compiled else index_reader._search
    hits: list[int] = []
    search((bytes(data),), slots, entries, "T", "k", 0, 1 << 60, None, follow_slots, 9, hits)
    assert len(hits) == (3 if follow_slots else found)
