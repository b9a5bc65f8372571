"""Links that lead nowhere among a store's files and folders: they hide nothing of what is there."""

from pathlib import Path

import pytest

from storage.detect import detect_config
from storage.files.read_files import StoreFiles
from storage.format.names import file_name
from storage.index.reader import IndexReader
from storage.readonly import StoreView
from tests.support.samples import TINY, batch, new_store, open_store, prepared


@pytest.fixture(params=["gone", "below a file", "itself"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """What a link leads to, None for itself; the kernel has an error of its own for each."""
    (tmp_path / "file").touch()
    places = {"gone": tmp_path / "gone", "below a file": tmp_path / "file" / "x"}
    return places.get(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = new_store(tmp_path / "s")
    with open_store(root) as store:
        store.put(prepared(batch("m", 5, "A", (0, 1))))
    return root


def put_link(folder: Path, name: str, target: Path | None) -> None:
    (folder / name).symlink_to(target or name)


def test_the_files_of_the_log_are_listed(root: Path, target: Path | None) -> None:
    files = StoreFiles(root, TINY)
    before = files.log.relist()
    assert before
    put_link(root / "commitlog", file_name(TINY.mapped_file_size_commit_log * 9), target)
    assert files.log.relist() == before


def test_the_queues_are_listed(root: Path, target: Path | None) -> None:
    put_link(root / "consumequeue", "B", target)
    put_link(root / "consumequeue" / "A", "7", target)
    assert StoreFiles(root, TINY).queue_folders() == [("A", 0), ("A", 1)]
    with StoreView.open(root) as view:
        assert view.queues() == [("A", 0), ("A", 1)]


def test_the_files_of_the_index_are_listed(root: Path, target: Path | None) -> None:
    index = IndexReader(root, TINY)
    before = index.names()
    assert before
    put_link(root / "index", "20991231235959999", target)
    assert index.names() == before


def test_the_lengths_of_a_java_stores_files_are_told(root: Path, target: Path | None) -> None:
    (root / "rmqctl" / "store.json").unlink()
    before = detect_config(root)
    put_link(root / "commitlog", file_name(TINY.mapped_file_size_commit_log * 9), target)
    put_link(root / "consumequeue", "B", target)
    put_link(root / "consumequeue" / "A" / "0", file_name(1 << 40), target)
    put_link(root / "index", "20991231235959999", target)
    assert detect_config(root) == before
