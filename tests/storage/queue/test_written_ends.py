"""The ends of many queues in one step, by the reference and by its compiled form."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from storage import native
from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.cq_unit import CQ_STORE_UNIT, PRE_BLANK
from storage.queue import written_end
from tests.support.compiled import compiled, needs_compiled

UNITS = 30
SIZE = UNITS * 20
HEAD, KEPT = SIZE, 100
FORMS = [
    pytest.param(native.references["written_ends"], id="pure"),
    pytest.param(getattr(compiled, "written_ends", None), id="compiled", marks=needs_compiled),
]


def units(*places: tuple[int, int]) -> bytes:
    return b"".join(CQ_STORE_UNIT.pack(offset, size, 7) for offset, size in places)


def queue(folder: Path, *files: bytes) -> str:
    folder.mkdir()
    for number, data in enumerate(files):
        (folder / f"{number * SIZE:020d}").write_bytes(data.ljust(SIZE, b"\0"))
    return str(folder)


def tiled(count: int, first: int = 0) -> bytes:
    return units(*((first + 10 * number, 10) for number in range(count)))


@pytest.mark.parametrize("form", FORMS)
def test_the_end_is_in_the_last_file(form: Any, tmp_path: Path) -> None:
    one = queue(tmp_path / "one", tiled(3))
    two = queue(tmp_path / "two", tiled(UNITS), tiled(7, 300))
    assert form([one, two], SIZE, HEAD, KEPT) == [
        ([0], 3, tiled(3), (0, 20, 30)),
        ([0, SIZE], UNITS + 7, tiled(5, 320), (320, 360, 370)),
    ]
    assert form([], SIZE, HEAD, KEPT) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "last",
    [
        pytest.param(units((50, 10), (40, 10)), id="goes back"),
        pytest.param(units((0, 10), (5, 10)), id="overlaps"),
        pytest.param(units((0, 10)) + PRE_BLANK + units((20, 10)), id="filler"),
        pytest.param(PRE_BLANK, id="one filler"),
        pytest.param(units(((1 << 63) - 5, 10)), id="beyond all numbers"),
    ],
)
def test_units_that_are_not_in_order_have_no_span(form: Any, tmp_path: Path, last: bytes) -> None:
    folder = queue(tmp_path / "q", last)
    count = len(last) // 20
    assert form([folder], SIZE, HEAD, KEPT) == [([0], count, last, None)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["no folder", "empty", "zeros", "more", "damage", "link", "cut"])
def test_what_is_unusual_is_left_to_a_reader(form: Any, tmp_path: Path, kind: str) -> None:
    data = {"more": tiled(HEAD // 20), "zeros": b"", "cut": tiled(3)[:50]}
    data["damage"] = tiled(3) + bytes(60) + b"x"
    folder = tmp_path / "q"
    if kind == "empty":
        folder.mkdir()
    elif kind == "link":
        queue(folder)
        (folder / f"{0:020d}").symlink_to(tmp_path)
    elif kind in data:
        queue(folder, data[kind])
    head = HEAD - 20 if kind == "more" else HEAD
    assert form([str(folder)], SIZE, head, KEPT) == [None]


@pytest.mark.parametrize("form", FORMS)
def test_a_long_file_ends_in_a_hole(form: Any, tmp_path: Path) -> None:
    folder = tmp_path / "q"
    folder.mkdir()
    path = folder / f"{0:020d}"
    path.write_bytes(tiled(3).ljust(4_096, b"\0"))
    os.truncate(path, 1 << 20)
    assert form([str(folder)], 20 << 20, 4_096, KEPT) == [([0], 3, tiled(3), (0, 20, 30))]
    with path.open("r+b") as file:
        file.seek(1 << 19)
        file.write(tiled(1))
    assert form([str(folder)], 20 << 20, 4_096, KEPT) == [None]


_PLACES = st.tuples(st.integers(-2, 60), st.integers(-1, 12))


@needs_compiled
@given(st.lists(st.lists(_PLACES, max_size=UNITS), min_size=1, max_size=3), st.integers(0, SIZE))
def test_both_forms_and_the_general_way_agree(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[int, int]]], length: int
) -> None:
    folder = queue(tmp_path_factory.mktemp("q") / "0", *(units(*places) for places in files))
    os.truncate(Path(folder) / f"{(len(files) - 1) * SIZE:020d}", length)
    found = compiled.written_ends([folder], SIZE, HEAD, KEPT)
    assert found == native.references["written_ends"]([folder], SIZE, HEAD, KEPT)
    if found[0] is not None:
        row = ReadOnlyFiles(MapBudget(), folder, SIZE)
        end, last = written_end._written_end(row, row.relist())
        offsets, its_end, units_of_it, span = found[0]
        assert (row.offsets(), end) == (offsets, its_end)
        assert last.endswith(units_of_it)
        assert (span is not None) is (written_end._span_of(units_of_it) is not None)
