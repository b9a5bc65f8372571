"""Errors for a folder that is no snapshot, and their remedies."""

from __future__ import annotations

import tarfile

import pytest

from storage.store import MessageStore
from tests.support.cli import run
from tests.support.rich_store import SIZES


@pytest.fixture
def others(tmp_path):
    """Things that are no snapshots, by their names."""
    MessageStore.create(tmp_path / "store", SIZES)
    with tarfile.open(tmp_path / "other.tar", "w") as archive:
        archive.add(__file__, "other/file")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("store", "it has no manifest.json"),
        ("empty", "it has no manifest.json"),
        ("nowhere", "no such file or folder"),
        ("nowhere.tar", "no such file or folder"),
        ("other.tar", "it does not begin with manifest.json"),
    ],
)
def test_what_is_no_snapshot_is_said_to_be_none(others, name, reason):
    path = others / name
    sentence = f"{path} is no snapshot: {reason}; take one with 'rmqctl store snapshot --save'"
    for words in (["snapshot", "--verify", path], ["restore", path, "-S", others / "new"]):
        result = run("store", *words)
        assert (result.code, result.out) == (3, "")
        assert result.err == f"rmqctl: {sentence}\n"
