"""``rmqctl/offsets.json`` is damaged, Java's file is whole: what the checks say, and what helps."""

from __future__ import annotations

import pytest

from storage.store import MessageStore
from tests.support.cli import run
from tests.support.rich_store import SIZES

OURS = "rmqctl/offsets.json"


@pytest.fixture(params=["empty", "flipped"])
def root(request, tmp_path):
    root = tmp_path / "s"
    MessageStore.create(root, SIZES)
    assert run("produce", "t", "-S", root, stdin=b"one\ntwo\n").code == 0
    options = ("-c", 2, "--from-where", "first")
    assert run("consume", "t", "-g", "g", *options, "-S", root).code == 0
    path = root / OURS
    text = path.read_bytes()
    path.write_bytes(b"" if request.param == "empty" else text.replace(b'"t@g"', b'"t@h"'))
    return root


def test_fsck_says_what_is_still_known_in_a_clause_without_the_path(root):
    (row,) = run("store", "fsck", "-S", root, "-o", "json").json()["findings"]
    assert (row["code"], row["file"]) == ("CONFIG_UNREADABLE", OURS)
    assert str(root) not in row["what"]
    assert "fsck" not in row["what"]
    assert "config/consumerOffset.json" in row["effect"]
    assert "unknown" not in row["effect"]
    assert row["fix"] == "rmqctl store recover-offsets --execute"
    assert "recover-offsets --execute" in row["what"]


def test_without_either_file_the_progress_is_unknown(root):
    (root / "config/consumerOffset.json").unlink()
    (root / "config/consumerOffset.json.bak").unlink(missing_ok=True)
    (row,) = run("store", "fsck", "-S", root, "-o", "json").json()["findings"]
    assert row["effect"] == "the progress of all groups is unknown"


@pytest.mark.parametrize("option", [(), ("--dry-run",), ("--execute", "--yes")])
def test_repair_names_what_mends_it_and_that_is_so(root, option):
    result = run("store", "repair", "-S", root, "-o", "json", *option)
    assert result.code == (4 if "--execute" in option else 0)
    if result.code == 0:
        (row,) = result.json()
        assert row["action"] == "NONE"
        assert "rmqctl store recover-offsets" in row["what"]
        assert "neither" not in row["what"]
    assert "repair can not mend this; the rows say what can" in result.err
    assert "--execute" not in result.err
    assert run("store", "recover-offsets", "-S", root, "--execute", "--yes").code == 0
    assert run("store", "fsck", "-S", root, "--fail-on", "warning").code == 0
