"""Carving a queue whose file was cut short, or is gone: what is left out is counted."""

import json

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.cli import run
from tests.support.hand_made import TINY
from tests.support.samples import START_MS, Sample

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
"""A queue without files is warned of."""

CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=2000)


@pytest.fixture
def root(tmp_path):
    """50 messages in each of two queues of T, a second apart, and others after them."""
    root = tmp_path / "s"
    MessageStore.create(root, CONFIG)
    clock = [START_MS]
    with MessageStore.open(root, clock=lambda: clock[0]) as store:
        for number in range(100):
            store.put_message(Sample(f"m{number}", "T", number % 2).inner())
            clock[0] += 1_000
        store.put_message(Sample("other", "Other").inner())
    return root


def cut(root, length):
    with (root / "consumequeue" / "T" / "0" / f"{0:020}").open("r+b") as file:
        file.truncate(length)


def carve(root, out, *options):
    line = ("store", "carve", out, "-S", root, "-t", "T", *options, "--execute", "--yes", "-q")
    result = run(*line, "-o", "json")
    return result, {row["queue_id"]: row for row in json.loads(result.out)}


@pytest.mark.slow
@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize(("length", "kept"), [(0, 0), (777, 38), (None, 0)])
def test_what_a_cut_queue_can_not_give_is_counted_as_lost(root, tmp_path, length, kept, copied):
    if copied:
        (root / "rmqctl" / "shared").unlink()  # then only the files show the queue's end
    if length is None:
        (root / "consumequeue" / "T" / "0" / f"{0:020}").unlink()
    else:
        cut(root, length)
    out = tmp_path / "out"
    result, rows = carve(root, out)
    if length is not None and not copied:  # the shared state tells the end: the log has the rest
        assert result.code == 0
        assert [(rows[queue]["messages"], rows[queue]["lost"]) for queue in (0, 1)] == [(50, 0)] * 2
        return
    assert result.code == 8
    assert f"{50 - kept} messages could not be read" in result.err
    assert (rows[0]["messages"], rows[0]["lost"]) == (kept, 50 - kept)
    assert (rows[1]["messages"], rows[1]["lost"]) == (50, 0)
    with StoreView.open(out) as view:
        assert fsck(view).healthy


@pytest.mark.parametrize("copied", [True, False])
def test_of_a_cut_queue_only_what_was_wanted_counts(root, tmp_path, copied):
    if copied:
        (root / "rmqctl" / "shared").unlink()
    cut(root, 777)  # 38 units, up to second 74
    begin, end = START_MS + 80_000, START_MS + 90_000
    result, rows = carve(root, tmp_path / "out", "--from", begin, "--to", end)
    if not copied:  # the shared state tells the end: the log has the rest
        assert result.code == 0
        assert [(rows[queue]["messages"], rows[queue]["lost"]) for queue in (0, 1)] == [(5, 0)] * 2
        return
    assert result.code == 8
    assert rows[0]["lost"] == 5
    assert (rows[1]["messages"], rows[1]["lost"]) == (5, 0)
    early, rows = carve(root, tmp_path / "early", "--to", START_MS + 50_000)
    assert early.code == 0
    assert (rows[0]["messages"], rows[0]["lost"]) == (25, 0)


def test_a_rebuilt_queue_goes_over_as_a_whole(root, tmp_path):
    cut(root, 777)
    assert run("store", "rebuild", "queue", "-t", "T", "-S", root, "--execute", "--yes").code == 0
    result, rows = carve(root, tmp_path / "out")
    assert result.code == 0
    assert [rows[number]["messages"] for number in (0, 1)] == [50, 50]
