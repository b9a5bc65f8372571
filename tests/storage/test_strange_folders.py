"""Folders among the queues that are none: recovery passes over them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.copies import copy_store
from tests.support.samples import Sample, new_store, open_store, prepared

_NAMES = [b"\xff", b"a\nb", "a\u2028b".encode(), b"a\x85"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store whose next opening recovers it."""
    root = new_store(tmp_path / "s")
    with open_store(root) as store:
        store.put(prepared([Sample("m0", "T")]))
    (root / "rmqctl" / "shared").unlink()
    return root


@pytest.mark.parametrize("name", _NAMES, ids=map(repr, _NAMES))
def test_a_folder_that_no_topic_can_have_is_passed_over(root: Path, name: bytes) -> None:
    queues = root / "consumequeue"
    strange = queues / os.fsdecode(name)
    copy_store(queues / "T", strange)
    with open_store(root) as store, open_store(root) as other:
        store.put(prepared([Sample("m1", "U")]))
        assert other.put(prepared([Sample("m2", "U")])).queue_offsets[0] == 1
        assert other.view.queues() == [("T", 0), ("U", 0)]
    assert strange.is_dir()


@pytest.mark.parametrize("name", ["007", "2147483648", "x"])
def test_a_folder_that_is_no_number_of_a_queue_is_passed_over(root: Path, name: str) -> None:
    copy_store(root / "consumequeue" / "T" / "0", root / "consumequeue" / "T" / name)
    with open_store(root) as store:
        assert store.put(prepared([Sample("m1", "T")])).queue_offsets[0] == 1
        assert store.view.queues() == [("T", 0)]


def test_a_file_named_like_a_queue_is_passed_over(root: Path) -> None:
    (root / "consumequeue" / "T" / "5").write_bytes(b"x")
    with open_store(root) as store:
        assert store.put(prepared([Sample("m1", "T")])).queue_offsets[0] == 1
        assert store.view.queues() == [("T", 0)]
