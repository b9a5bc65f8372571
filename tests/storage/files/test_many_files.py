"""Small reads of many files in one step, by the references and by their compiled forms."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from storage import native
from storage.files.read_files import StoreFiles, relist_each
from tests.support.compiled import compiled, needs_compiled
from tests.support.samples import SMALL

SIZE = 40
FORMS = [
    pytest.param(native.references, id="pure"),
    pytest.param(None if compiled is None else vars(compiled), id="compiled", marks=needs_compiled),
]


def name_of(offset: int) -> str:
    return f"{offset:020d}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "queue"
    folder.mkdir()
    for offset in (80, 0, 40, (1 << 63) // SIZE * SIZE, 41):
        (folder / name_of(offset)).write_bytes(b"x")
    for name in ("a", "0" * 19, "0" * 21, "9" * 20, "18446744073709551600"):
        (folder / name).write_bytes(b"x")
    (folder / name_of(120)).mkdir()
    return folder


@pytest.mark.parametrize("forms", FORMS)
def test_files_are_listed_by_their_offsets(forms: Any, folder: Path) -> None:
    missing, empty, file = folder / "missing", folder / "empty", folder / name_of(0)
    empty.mkdir()
    folders = [str(path) for path in (folder, missing, empty, file)]
    offsets = [0, 40, 80, (1 << 63) // SIZE * SIZE]
    assert forms["list_offsets"](folders, SIZE) == [offsets, [], [], []]
    assert forms["list_offsets"]([], SIZE) == []


@pytest.mark.parametrize("forms", FORMS)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_folder_with_more_than_files_is_left_to_a_reader(
    forms: Any, folder: Path, kind: str
) -> None:
    path = folder / name_of(160)
    if kind == "link":
        path.symlink_to(folder / name_of(0))
    else:
        os.mkfifo(path)
    assert forms["list_offsets"]([str(folder)], SIZE) == [None]
    row = StoreFiles(folder, SMALL).log
    row.directory, row.file_size = str(folder), SIZE
    assert relist_each([row]) == [row.offsets()] == [row.relist()]
    assert (160 in row.offsets()) is (kind == "link")


@pytest.mark.parametrize("forms", FORMS)
def test_parts_of_files_are_read(forms: Any, tmp_path: Path) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(bytes(range(100)))
    os.mkfifo(pipe)
    paths = [str(path) for path in (file, file, file, tmp_path / "missing", tmp_path, pipe)]
    found = forms["read_each"](paths, [0, 90, 200, 0, 0, 0], [10, 20, 5, 1, 1, 1])
    assert found == [bytes(range(10)), bytes(range(90, 100)), b"", None, None, None]
    assert forms["read_each"]([], [], []) == []


@needs_compiled
def test_wrong_arguments_are_refused() -> None:
    for call, error in (
        (lambda: compiled.list_offsets(("a",), 1), TypeError),
        (lambda: compiled.list_offsets(["a"], 0), ValueError),
        (lambda: compiled.list_offsets(["a\0b"], 1), ValueError),
        (lambda: compiled.list_offsets([5], 1), TypeError),
        (lambda: compiled.list_offsets([], "1"), TypeError),
        (lambda: compiled.read_each(["a"], [0], []), IndexError),
        (lambda: compiled.read_each(["a"], [-1], [1]), ValueError),
        (lambda: compiled.read_each(["a"], [0], [1 << 40]), ValueError),
        (lambda: compiled.read_each(["a"], (0,), [1]), TypeError),
        (lambda: compiled.written_ends(["a"], 40, 0, 20), ValueError),
        (lambda: compiled.written_ends(["a"], 40, 20, 1 << 40), ValueError),
        (lambda: compiled.written_ends(["a"], 0, 20, 20), ValueError),
        (lambda: compiled.written_ends(["a"], "", 20, 20), TypeError),
        (lambda: compiled.written_ends("a", 40, 20, 20), TypeError),
        (lambda: compiled.written_ends(["a"], 40, 20), TypeError),
    ):
        with pytest.raises(error):
            call()
