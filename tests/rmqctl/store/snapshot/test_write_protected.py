"""Snapshots and stores whose folder is write-protected: an ordinary owner can copy them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from storage.store import MessageStore
from storage.tools.snapshot.staging import staging, staging_path
from tests.support.cli import run
from tests.support.crash import fast_folder
from tests.support.privileges import without_privileges
from tests.support.rich_store import SIZES


@pytest.fixture
def place():
    with fast_folder() as folder:
        yield folder
        for path in [folder, *folder.glob("*/"), *folder.glob(".*/**/")]:
            path.chmod(0o700)


@pytest.fixture
def store(place):
    root = place / "store"
    MessageStore.create(root, SIZES)
    assert run("produce", "t", "-S", root, stdin=b"one\ntwo\n").code == 0
    return root


def call(*args):
    """Run the program as a user with ordinary permissions."""
    command = [*without_privileges(), sys.executable, "-m", "rmqctl", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def modes(place):
    return {path.name: path.stat().st_mode & 0o777 for path in place.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o555, 0o500])
def test_a_write_protected_snapshot_is_restored(store, place, mode):
    call("store", "snapshot", "-S", store, "--save", place / "snap")
    (place / "snap").chmod(mode)
    call("store", "restore", place / "snap", "-S", place / "new", "--execute", "-y")
    assert modes(place) == {"store": 0o755, "snap": mode, "new": mode}
    assert run("store", "diff", store, place / "new", "--deep", "-o", "json").json() == []


@pytest.mark.slow
def test_a_write_protected_store_is_replaced(store, place):
    call("store", "snapshot", "-S", store, "--save", place / "snap")
    store.chmod(0o555)
    confirmed = ("--confirm", store.name)
    call("store", "restore", place / "snap", "-S", store, "--execute", "-y", *confirmed)
    (aside,) = (path for path in place.iterdir() if "before-restore" in path.name)
    assert modes(place) == {"store": 0o555, "snap": 0o755, aside.name: 0o555}


@pytest.mark.parametrize("form", ["snap", "snap.tar"])
@pytest.mark.slow
def test_a_write_protected_store_is_copied(store, place, form):
    store.chmod(0o555)
    call("store", "snapshot", "-S", store, "--save", place / form)
    assert modes(place) == {"store": 0o555, form: 0o555 if form == "snap" else 0o444}
    assert run("store", "snapshot", "--verify", place / form).code == 0


@pytest.mark.slow
def test_what_a_killed_process_left_write_protected_is_removed(store, place):
    left = staging_path(place / "snap") / "store" / "commitlog"
    left.mkdir(parents=True)
    (left / "0").write_bytes(b"x")
    elsewhere = place / "elsewhere"
    elsewhere.mkdir(0o555)
    (left / "link").symlink_to(elsewhere)
    for path in (left, left.parent):
        path.chmod(0o500)
    call("store", "snapshot", "-S", store, "--save", place / "snap")
    assert modes(place) == {"store": 0o755, "snap": 0o755, "elsewhere": 0o555}


def test_cleaning_up_hides_no_error(place):
    def fail_where_nothing_can_be_cleaned_up():
        with staging(place / "snap") as folder:
            folder.rename(place / "elsewhere")
            raise OSError("the real one")

    with pytest.raises(OSError, match="the real one"):
        fail_where_nothing_can_be_cleaned_up()
