"""``rmqctl store repair`` from plan to done."""

import json
import os

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.cli import run
from tests.support.hand_made import TINY, HandMade
from tests.support.java_lock import java_lock

FIELDS = ["step", "action", "file", "position", "bytes", "why", "what", "cost", "lost_messages"]
LOG = f"commitlog/{0:020d}"


@pytest.fixture
def made():
    made = HandMade(TINY.with_(mapped_file_size_commit_log=4096))
    for number in range(6):
        made.put("T", number % 2, b"body %d" % number, tags="a", keys=(f"k{number}",))
    return made


@pytest.fixture
def root(made, tmp_path):
    """A closed store; the body of its third message (T queue 0 offset 1) is damaged."""
    root = made.write(tmp_path / "s")
    flip(root, made.messages[2].commitlog_offset + 88)
    return root


def flip(root, position):
    with (root / LOG).open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes((byte ^ 0xFF,)))


def files(root):
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file()
    }


def bodies(root):
    with StoreView.open(root) as view:
        return [
            message.body
            for queue in (0, 1)
            for message in view.get_message("T", queue, 0, 32).messages
        ]


def test_the_plan_says_what_where_why_and_what_it_costs_and_changes_nothing(root, made):
    before = files(root)
    result = run("store", "repair", "-S", root, "-o", "json")
    assert result.code == 7, result.err
    (row,) = json.loads(result.out)
    assert list(row)[: len(FIELDS)] == FIELDS
    gone = made.messages[2]
    assert (row["action"], row["file"]) == ("REPLACE", LOG)
    assert (row["position"], row["bytes"]) == (gone.commitlog_offset, gone.size)
    assert row["why"] == "RECORD_DAMAGED"
    assert row["lost_messages"] == 1
    assert "Java broker delivers a body of zeros" in row["cost"]
    assert "add --yes" in result.err
    assert files(root) == before


@pytest.mark.slow
def test_a_damaged_record_is_replaced_and_its_bytes_are_kept(root, made):
    gone = made.messages[2]
    before = (root / LOG).read_bytes()
    damaged = before[gone.commitlog_offset : gone.commitlog_offset + gone.size]
    result = run("store", "repair", "-S", root, "--execute", "--yes", "-o", "json")
    assert result.code == 0, result.err
    (row,) = json.loads(result.out)
    assert row["applied"] is True
    assert "no findings are left" in result.err
    assert bodies(root) == [b"body 0", b"body 4", b"body 1", b"body 3", b"body 5"]
    (run_folder,) = (root / "rmqctl" / "quarantine").iterdir()
    (piece,) = map(json.loads, (run_folder / "manifest.jsonl").read_text().splitlines())
    assert (run_folder / piece["kept"]).read_bytes() == damaged
    assert (piece["path"], piece["position"]) == (LOG, gone.commitlog_offset)
    after = (root / LOG).read_bytes()
    assert after[: gone.commitlog_offset] == before[: gone.commitlog_offset]
    assert after[gone.commitlog_offset + gone.size :] == before[gone.commitlog_offset + gone.size :]
    with StoreView.open(root) as view:
        (finding,) = fsck(view).findings
    assert (finding.code, finding.severity) == ("RECORD_REPLACED", "info")
    assert (finding.file, finding.position) == (LOG, gone.commitlog_offset)
    (entry,) = json.loads(run("audit", "list", "-S", root, "-o", "json").out)
    assert entry["command"] == "store repair"


@pytest.mark.slow
def test_a_repaired_store_has_nothing_to_repair(root):
    assert run("store", "repair", "-S", root, "--execute", "--yes").code == 0
    before = files(root)
    result = run("store", "repair", "-S", root, "--execute", "--yes")
    assert (result.code, result.err.count("there is nothing to change")) == (0, 1)
    assert files(root) == before


def test_without_a_yes_nothing_is_done(root):
    before = files(root)
    result = run("store", "repair", "-S", root, "--execute")
    assert result.code == 7
    assert files(root) == before


def test_it_is_refused_beside_a_java_broker_and_beside_our_own_writers(root):
    (root / "lock").touch()
    with java_lock(root):
        assert run("store", "repair", "-S", root, "--execute", "--yes").code == 5
    with MessageStore.open(root):
        result = run("store", "repair", "-S", root, "--execute", "--yes")
    assert result.code == 7
    assert str(os.getpid()) in result.err


@pytest.mark.slow
def test_a_plan_that_does_not_hold_any_more_is_not_carried_out(root, made, tmp_path):
    plan = tmp_path / "plan.json"
    assert run("store", "repair", "-S", root, "--export", plan, "-n").code == 0
    assert run("store", "repair", "-S", root, "--expect", plan, "-n").code == 0
    flip(root, made.messages[4].commitlog_offset + 88)
    before = files(root)
    result = run("store", "repair", "-S", root, "--expect", plan, "--execute", "--yes")
    assert result.code == 6
    assert files(root) == before


@pytest.mark.slow
@pytest.mark.parametrize("export", ["plan.json", "new.json"])
def test_a_plan_that_does_not_hold_any_more_is_not_saved_anew(root, made, tmp_path, export):
    plan = tmp_path / "plan.json"
    assert run("store", "repair", "-S", root, "--export", plan, "-n").code == 0
    flip(root, made.messages[4].commitlog_offset + 88)
    before, approved = files(root), plan.read_bytes()
    words = ("--export", tmp_path / export, "--expect", plan, "--yes")
    assert run("store", "repair", "-S", root, *words).code == 6
    assert (files(root), plan.read_bytes()) == (before, approved)
    assert (tmp_path / export).exists() == (export == "plan.json")


@pytest.mark.slow
def test_only_chooses_parts(root, made):
    folder = root / "consumequeue" / "T" / "1"
    for path in folder.iterdir():
        path.unlink()
    result = run("store", "repair", "-S", root, "--only", "queue", "-o", "json")
    assert [row["file"] for row in json.loads(result.out)] == ["consumequeue/T/1"]
    result = run("store", "repair", "-S", root, "--only", "queue", "--execute", "--yes")
    assert result.code == 4  # the log is still damaged
    assert "1 error is left" in result.err
    assert b"body 1" in bodies(root)
    assert run("store", "repair", "-S", root, "--only", "nothing").code == 2


@pytest.mark.slow
def test_what_can_not_be_mended_is_said(root, made):
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":')
    result = run("store", "repair", "-S", root, "--only", "config", "-o", "json")
    (row,) = json.loads(result.out)
    assert (row["action"], row["file"]) == ("NONE", "config/consumerOffset.json")
    assert "recover-offsets" in row["what"]
    result = run("store", "repair", "-S", root, "--only", "config", "--execute", "--yes")
    assert result.code == 4
    result = run("store", "repair", "-S", root, "--execute", "--yes", "-o", "json")
    assert result.code == 4  # the settings are still damaged
    assert [row["applied"] for row in json.loads(result.out)] == [True, False]
