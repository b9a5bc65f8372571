"""``rmqctl/offsets.log`` is damaged, Java's file is whole: what the checks say, and what helps."""

from __future__ import annotations

import shutil

import pytest

from rmqctl.admin import store as admin
from rmqctl.admin.changes import journal_note
from storage.errors import StoreChangedError
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.rich_store import SIZES

OURS = "rmqctl/offsets.log"


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
    assert row["fix"] == "rmqctl store recover-offsets"
    assert "recover-offsets" in row["what"]


def test_without_either_file_the_progress_is_unknown(root):
    (root / "config/consumerOffset.json").unlink()
    (root / "config/consumerOffset.json.bak").unlink(missing_ok=True)
    (row,) = run("store", "fsck", "-S", root, "-o", "json").json()["findings"]
    assert row["effect"] == "the progress of all groups is unknown"


@pytest.mark.parametrize("option", [(), ("--dry-run",)])
def test_repair_plans_to_put_it_together_again(root, option):
    before = (root / OURS).read_bytes()
    (row,) = run("store", "repair", "-S", root, "-o", "json", *option).json()
    assert (row["action"], row["file"]) == ("RECOVER", OURS)
    assert "the progress of 1 group in " in row["what"]
    assert (root / OURS).read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("words", [("repair",), ("recover-offsets",)])
def test_repair_and_recovery_put_it_together_again(root, words):
    assert run("store", *words, "-S", root, "--execute", "--yes").code == 0
    assert run("store", "fsck", "-S", root, "--fail-on", "warning").code == 0
    rows = run("offset", "list", "-g", "g", "-S", root, "-o", "json").json()
    assert sum(row["committed_offset"] or 0 for row in rows if row["topic"] == "t") == 2
    assert list((root / "rmqctl/quarantine").glob("*/rmqctl/offsets.log"))


@pytest.mark.slow
def test_where_nothing_tells_of_progress_repair_says_what_that_means(root):
    for path in (root / "config").glob("consumerOffset.json*"):
        path.unlink()
    shutil.rmtree(root / "rmqctl" / "samples", ignore_errors=True)
    (row,) = run("store", "repair", "-S", root, "-o", "json", "--only", "offset").json()
    assert "starts as a new group" in row["cost"]
    assert run("store", "repair", "-S", root, "--execute", "--yes").code == 0
    assert run("store", "fsck", "-S", root).code == 0


def test_a_file_that_is_whole_again_since_the_plan_is_not_put_away(root):
    for path in (root / "config").glob("consumerOffset.json*"):
        path.unlink()
    shutil.rmtree(root / "rmqctl" / "samples", ignore_errors=True)
    shutil.rmtree(root / "rmqctl" / "journal", ignore_errors=True)
    with StoreView.open(root) as view:
        change = admin.recover_offsets(view)
    assert change.gives_up
    assert run("store", "repair", "-S", root, "--execute", "--yes").code == 0
    reset = ("offset", "reset", "-g", "g", "-t", "t", "--to-offset", "1")
    assert run(*reset, "-S", root, "--yes").code == 0
    written = (root / OURS).read_bytes()
    for do in (change.check, lambda: change.apply(journal_note("test"))):
        with pytest.raises(StoreChangedError, match=r"offsets\.log has changed since the plan"):
            do()
    assert (root / OURS).read_bytes() == written


@pytest.mark.slow
@pytest.mark.parametrize("has_evidence", [True, False])
def test_a_file_that_was_mended_since_the_plan_is_not_repaired(root, has_evidence):
    if not has_evidence:
        for path in (root / "config").glob("consumerOffset.json*"):
            path.unlink()
        shutil.rmtree(root / "rmqctl" / "samples", ignore_errors=True)
        shutil.rmtree(root / "rmqctl" / "journal", ignore_errors=True)
    with StoreView.open(root) as view:
        change = admin.repair(view)
    assert run("store", "recover-offsets", "-S", root, "--execute", "--yes").code == 0
    reset = ("offset", "reset", "-g", "g", "-t", "t", "--to-offset", "1")
    assert run(*reset, "-S", root, "--yes").code == 0
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for do in (change.check, lambda: list(change.apply(journal_note("test")).rows)):
        with pytest.raises(StoreChangedError, match=r"offsets\.log has changed since the plan"):
            do()
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
