"""Names as long as a folder can hold: what is made beside them has a shorter one."""

import os

import pytest

from storage.files.creating import create_beside, remove_left, replacing
from storage.tools.carve.new_store import staged_folder
from storage.tools.snapshot.restore import restore_snapshot
from storage.tools.snapshot.snapshot import take_snapshot
from storage.tools.snapshot.snapshot_source import open_snapshot
from storage.tools.snapshot.staging import staging, staging_path
from tests.support.samples import new_store

LONG = {
    "three bytes each": chr(0x4E2D) * 83 + ".csv",
    "two bytes each": chr(0x431) * 127,
    "ascii": "x" * 255,
    "no text": os.fsdecode(b"\xff" * 255),
}
long_names = pytest.mark.parametrize("name", LONG.values(), ids=LONG.keys())


@long_names
def test_a_file_is_replaced_and_what_was_left_of_it_is_removed(tmp_path, name):
    path = tmp_path / name
    for content in (b"old", b"new"):
        with replacing(path) as file:
            file.write(content)
    assert path.read_bytes() == b"new"
    fd, made = create_beside(path)
    os.close(fd)
    remove_left(tmp_path, "y" + name[1:])
    assert made.exists(), "it is not one of that file"
    remove_left(tmp_path, name)
    assert list(tmp_path.iterdir()) == [path]


@long_names
def test_a_store_is_carved(tmp_path, name):
    with staged_folder(tmp_path / name) as folder:
        (folder / "file").touch()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@long_names
def test_a_snapshot_is_taken_and_restored_in_the_place_of_a_store(tmp_path, name):
    root = new_store(tmp_path / "store")
    taken = tmp_path / "taken" / name
    take_snapshot(root, taken, now_ms=1)
    target = new_store(tmp_path / "made" / name)
    done = restore_snapshot(open_snapshot(taken), target, run="20260101T000000Z")
    assert done.aside is not None
    assert sorted(target.parent.iterdir()) == sorted([target, done.aside])
    assert done.aside.name.endswith(".before-restore-20260101T000000Z")


def test_two_long_names_with_the_same_begin_can_be_made_at_once(tmp_path):
    one, other = (tmp_path / ("x" * 254 + letter) for letter in "ab")
    assert staging_path(one) != staging_path(other)
    with staging(one), staging(other), staged_folder(one), staged_folder(other):
        pass
    assert sorted(tmp_path.iterdir()) == [one, other]
