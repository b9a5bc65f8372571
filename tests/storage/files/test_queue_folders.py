"""Folders of queues are listed again where they changed, and only there."""

from __future__ import annotations

import os
import time
from pathlib import Path

from storage.files.queue_folders import QueueFolders

LONG_AGO = (1_600_000_000, 1_600_000_000)


def make(root: Path, *queues: str) -> None:
    for queue in queues:
        (root / queue).mkdir(parents=True)


def settle(root: Path) -> None:
    """Let the last change of each topic be long ago."""
    for topic in root.iterdir():
        os.utime(topic, LONG_AGO)


def test_queues_are_sorted_and_other_folders_left_out(tmp_path: Path) -> None:
    assert QueueFolders(str(tmp_path / "missing")).now() == []
    make(tmp_path, "b/10", "b/2", "a/0", "a/01", "a/x", f"a/{1 << 31}")
    (tmp_path / "file").touch()
    (tmp_path / "a" / "5").touch()
    assert QueueFolders(str(tmp_path)).now() == [("a", 0), ("b", 2), ("b", 10)]


def test_what_comes_and_goes_is_noticed(tmp_path: Path) -> None:
    make(tmp_path, "a/0", "b/0")
    settle(tmp_path)
    folders = QueueFolders(str(tmp_path))
    assert folders.now() == folders.now() == [("a", 0), ("b", 0)]
    make(tmp_path, "a/1", "c/7")
    assert folders.now() == [("a", 0), ("a", 1), ("b", 0), ("c", 7)]
    settle(tmp_path)
    assert len(folders.now()) == 4
    (tmp_path / "a" / "0").rmdir()
    (tmp_path / "b" / "0").rmdir()
    (tmp_path / "b").rmdir()
    assert folders.now() == [("a", 1), ("c", 7)]


def test_a_folder_that_is_as_it_was_is_not_listed_again(tmp_path: Path) -> None:
    make(tmp_path, "a/0")
    settle(tmp_path)
    folders = QueueFolders(str(tmp_path))
    folders.now()
    make(tmp_path, "a/1")
    settle(tmp_path)  # as if nothing had changed
    assert folders.now() == [("a", 0)]


def test_a_second_change_at_the_same_time_is_noticed(tmp_path: Path) -> None:
    make(tmp_path, "a/0")
    now = time.time_ns()
    os.utime(tmp_path / "a", ns=(now, now))
    folders = QueueFolders(str(tmp_path))
    assert folders.now() == [("a", 0)]
    make(tmp_path, "a/1")
    os.utime(tmp_path / "a", ns=(now, now))
    assert folders.now() == [("a", 0), ("a", 1)]


def test_another_folder_of_the_same_name_is_noticed(tmp_path: Path) -> None:
    make(tmp_path, "a/0", "other/1")
    settle(tmp_path)
    folders = QueueFolders(str(tmp_path))
    folders.now()
    (tmp_path / "a").rename(tmp_path.with_name("before"))
    (tmp_path / "other").rename(tmp_path / "a")
    settle(tmp_path)
    assert folders.now() == [("a", 1)]


def test_links_are_followed_each_time(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    make(root, "a/0")
    elsewhere.mkdir()
    (root / "a" / "1").symlink_to(elsewhere)
    settle(root)
    folders = QueueFolders(str(root))
    assert folders.now() == [("a", 0), ("a", 1)]
    elsewhere.rmdir()
    assert folders.now() == [("a", 0)]
