"""Whole records past the known end: their writer died before it could announce them."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.coordination.shared_state import STAGE_DISPATCH
from storage.format.names import file_name
from storage.readonly import StoreView
from storage.tools.fsck import Severity, fsck
from storage.tools.fsck.findings import Code
from tests.support.cli import run
from tests.support.last_instant import BEFORE, LAST
from tests.support.samples import open_store
from tests.support.slim import Slim

KNOWN, MORE = sum(len(put.samples) for put in BEFORE), len(LAST.samples)


def killed(folder, kind, what):
    died = "tests.support.last_instant:die_in_last_put"
    found = Slim(died, folder=str(folder), kind=kind, what=what).result()
    assert found["was_killed"]
    return found


@pytest.fixture(params=[("map", "consumequeue"), ("word", "LOG_END")], ids=["units", "end"])
def died(request, tmp_path):
    """A store whose writer died when all records of its last put were there: before their units,
    or before the log's end was set."""
    found = killed(tmp_path, *request.param)
    assert found["stage"] == STAGE_DISPATCH
    return Path(found["root"]), found["start"], found["end"] - found["start"]


def write(root, position, data):
    with (root / "commitlog" / file_name(0)).open("r+b") as file:
        file.seek(position)
        file.write(data)


def findings(root):
    """What is wrong with the log; that the store was not closed is reported besides."""
    with StoreView.open(root) as view:
        return [found for found in fsck(view).findings if found.code.startswith("LOG_")]


def messages(root):
    with StoreView.open(root) as view:
        return sum(
            bounds.max_offset - bounds.min_offset
            for bounds in (view.queue_bounds(*queue) for queue in view.queues())
        )


@pytest.mark.slow
def test_they_are_told_of_and_the_next_writer_takes_them_in(died):
    root, end, size = died
    (finding,) = findings(root)
    assert (finding.code, finding.severity) == (Code.LOG_NOT_TAKEN_IN, Severity.INFO)
    assert finding.position == end
    assert f"{size} bytes of whole records" in finding.what
    with open_store(root):
        pass
    assert messages(root) == KNOWN + MORE
    assert findings(root) == []


@pytest.mark.slow
def test_repair_leaves_them_and_clears_what_is_behind_them(died):
    root, end, size = died
    write(root, end + size, b"left over")
    assert [finding.code for finding in findings(root)] == [
        Code.LOG_NOT_TAKEN_IN,
        Code.LOG_TORN_TAIL,
    ]
    step, *_ = run("store", "repair", "-S", root, "-o", "json").json()
    assert (step["action"], step["position"], step["bytes"]) == ("CLEAR", end + size, 9)
    result = run("store", "repair", "--execute", "--yes", "-S", root)
    assert result.code == 0, result.err
    with open_store(root):
        pass
    assert messages(root) == KNOWN + MORE
    assert findings(root) == []


@pytest.mark.slow
def test_a_batch_that_is_not_all_there_is_cut_off(tmp_path):
    found = killed(tmp_path, "torn map", "commitlog")
    root = Path(found["root"])
    (finding,) = findings(root)
    assert (finding.code, finding.position) == (Code.LOG_TORN_TAIL, found["start"])
    with open_store(root):
        pass
    assert messages(root) == KNOWN
    assert findings(root) == []
