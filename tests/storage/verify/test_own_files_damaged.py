"""A file of rmqctl's own is damaged: what is said names a remedy, and the remedy works."""

from __future__ import annotations

import pytest

from storage.configs.deleted_topics import read_deleted_topics
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.rich_store import SIZES

REMEDIES = {
    "store.json": "remove it to have the sizes taken from the store's own files",
    "settings.json": "remove it for the defaults",
}


@pytest.fixture
def root(tmp_path):
    """A store with a changed setting and a deleted topic."""
    root = tmp_path / "s"
    MessageStore.create(root, SIZES)
    for topic in ("kept", "gone"):
        assert run("produce", topic, "-c", 40, "--template", "%i", "-S", root).code == 0
    assert run("broker", "config", "set", "fileReservedTime", 24, "--yes", "-S", root).code == 0
    assert run("topic", "delete", "gone", "--confirm", "gone", "--execute", "-S", root).code == 0
    assert list(read_deleted_topics(root)) == ["gone"]
    return root


@pytest.mark.parametrize("content", [b"", b"{", b'{"version":"x"}'])
@pytest.mark.parametrize("name", REMEDIES)
@pytest.mark.parametrize("words", [("fsck",), ("repair",)])
def test_the_check_names_a_remedy_that_works_and_not_itself(root, name, content, words):
    path = root / "rmqctl" / name
    path.write_bytes(content)
    result = run("store", *words, "-S", root)
    assert (result.code, result.out) == (4, "")
    assert result.err.startswith(f"rmqctl: {path} is damaged at byte 0: ")
    assert REMEDIES[name] in result.err
    assert "fsck" not in result.err
    path.unlink()
    assert run("store", "fsck", "--fail-on", "warning", "-S", root).code == 0


@pytest.mark.parametrize("words", [("fsck",), ("repair",)])
def test_a_damaged_list_of_deleted_topics_sends_nobody_in_a_circle(root, words):
    path = root / "rmqctl" / "deleted.json"
    path.write_bytes(b"{")
    result = run("store", *words, "-S", root)
    assert (result.code, result.out) == (4, "")
    assert result.err.startswith(f"rmqctl: {path} is damaged at byte 0: ")
    assert "fsck" not in result.err


def test_damaged_progress_names_the_check_that_tells_what_mends_it(root):
    path = root / "rmqctl" / "offsets.json"
    path.write_bytes(b"{")
    assert "'rmqctl store fsck' lists all damage" in run("group", "list", "-S", root).err
