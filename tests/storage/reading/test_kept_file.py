"""A file that is kept is told from another one, however soon that comes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import native
from storage.files.kept_file import KeptFile, ident_of
from tests.support.compiled import compiled
from tests.support.open_files import open_paths


@pytest.fixture(params=[None, compiled], ids=["pure", "compiled"])
def kept(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KeptFile]:
    monkeypatch.setattr(native, "compiled", request.param)
    made = KeptFile(str(tmp_path / "kept"), clock=lambda: 1000.0)
    yield made
    made.close()


def replace(path: Path, text: str) -> None:
    staged = path.with_name("staged")
    staged.write_text(text)
    staged.replace(path)


def test_it_is_the_same_object_while_nothing_happens(kept: KeptFile, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    assert kept.ident() is None
    path.write_text("a")
    assert kept.ident() == ident_of(path)
    assert kept.ident() is kept.ident()


def test_each_of_many_is_seen_at_once(kept: KeptFile, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    for number in range(200):  # many in one tick of the file system's clock
        replace(path, "x" * (number % 7))
        assert kept.ident() == ident_of(path)
        assert kept.ident() == ident_of(path)
    path.unlink()
    assert kept.ident() is None


def test_writing_in_place_is_seen(kept: KeptFile, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_text("a")
    kept.ident()
    os.utime(path, (5, 5))
    assert kept.ident() == ident_of(path)


def test_it_keeps_few_files_and_none_in_the_end(kept: KeptFile, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    for number in range(9):
        replace(path, str(number))
        kept.ident()
    assert len(open_paths(tmp_path)) <= 2
    kept.close()
    assert open_paths(tmp_path) == []


def test_who_forgets_to_close_it_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a")
    made = KeptFile(str(tmp_path / "kept"))
    made.ident()
    del made
    assert open_paths(tmp_path) == []
