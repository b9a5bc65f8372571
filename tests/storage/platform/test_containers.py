"""Stores on what containers have: layers of an image, and volumes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.mounting import NEW_MOUNTS, skip_unless_mountable
from tests.support.slim import Slim


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("what", ["use_layers", "use_volume"])
def test_killed_writers_of_a_container_lose_nothing(tmp_path: Path, what: str) -> None:
    skip_unless_mountable(tmp_path)
    call = Slim(f"tests.support.containers:{what}", inside=NEW_MOUNTS, folder=str(tmp_path))
    found = call.result()
    assert found["failures"] == []
    assert found["killed"] >= 1
    assert found["messages"] > 120


@pytest.mark.slow
def test_a_layer_of_a_container_is_named(tmp_path: Path) -> None:
    skip_unless_mountable(tmp_path)
    call = Slim("tests.support.containers:kind_of_layers", inside=NEW_MOUNTS, folder=str(tmp_path))
    assert call.result() == "overlay"


@pytest.mark.slow
def test_a_file_system_of_the_network_is_refused_for_writing(tmp_path: Path) -> None:
    skip_unless_mountable(tmp_path)
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs a file system of FUSE")
    call = Slim(
        "tests.support.fuse_folder:refused_on",
        inside=NEW_MOUNTS,
        folder=str(tmp_path),
        kind="fuse.sshfs",
    )
    found, sentence = call.result()
    assert found == "fuse.sshfs"
    assert "lies on a fuse.sshfs file system" in sentence
