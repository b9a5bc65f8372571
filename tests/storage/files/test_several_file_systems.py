"""A store whose folders lie on several file systems is read, and not written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import StoreNotWritableError
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.samples import SMALL, Sample, new_store, open_store, prepared

_FOLDERS = (Path("/dev/shm"), Path("/tmp"), Path(__file__).parent)


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    here = tmp_path.stat().st_dev
    others = (p for p in _FOLDERS if p.is_dir() and os.access(p, os.W_OK))
    place = next((p for p in others if p.stat().st_dev != here), None)
    if place is None:
        pytest.skip("needs a file system other than that of temporary files")
    folder = Path(tempfile.mkdtemp(dir=place))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["commitlog", "consumequeue", "index"])
def test_a_folder_on_another_file_system_is_read_and_not_written(
    tmp_path: Path, other_disk: Path, name: str
) -> None:
    """New files are renamed from ``rmqctl/``: the first one would fail, in the midst of an
    append."""
    root = new_store(tmp_path / "s", SMALL)
    with open_store(root, SMALL) as store:
        store.put(prepared((Sample("one", "T", 0, keys=("key",)),)))
    shutil.move(root / name, other_disk / name)
    (root / name).symlink_to(other_disk / name)
    with pytest.raises(StoreNotWritableError, match=f"folder {name} is on another file system"):
        MessageStore.open(root)
    with StoreView.open(root) as view:
        assert len(view.get_message("T", 0, 0, 32).messages) == 1


def test_a_folder_that_is_a_link_on_the_same_file_system_is_written(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", SMALL)
    (root / "commitlog").rename(tmp_path / "log")
    (root / "commitlog").symlink_to(tmp_path / "log")
    with open_store(root, SMALL) as store:
        store.put(prepared((Sample("one", "T", 0),)))
    assert [*(tmp_path / "log").iterdir()]
