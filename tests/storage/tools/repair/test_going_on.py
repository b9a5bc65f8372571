"""After a repair the store is written on: no new message gets the number of a lost one."""

import pytest

from storage.format.names import COMMITLOG
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.repair.steps import Action
from tests.support import golden
from tests.support.damages import NotHere, damage
from tests.support.hand_made import TINY, HandMade
from tests.support.mended import held, repair, wrong
from tests.support.samples import Sample, prepared

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
"""Some kinds of damage take the log's last files away, and readers warn of that."""

CONFIG = TINY.with_(mapped_file_size_commit_log=2048)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "log: the last records zeroed",
        "log: the last file missing",
        "log: a file in the middle missing",
        "log: a page zeroed",
    ],
)
def test_queues_go_on_behind_what_was_lost(kind, tmp_path):
    root = golden.extract("small-files-4.9", tmp_path)
    ends = _ends(root)
    try:
        damage(root, kind)
    except NotHere as lack:
        pytest.fail(str(lack))
    repair(root)
    assert _ends(root) == ends
    before = held(root)
    with MessageStore.open(root) as store:
        for (topic, queue_id), end in ends.items():
            result = store.put(prepared([Sample(f"new-{topic}-{queue_id}", topic, queue_id)]))
            assert result.queue_offsets[0] == end
    assert wrong(root) == []
    after = held(root)
    assert {place: after[place] for place in before} == before
    assert len(after) == len(before) + len(ends)


def _ends(root):
    with StoreView.open(root) as view:
        return {key: view.max_offset_in_queue(*key) for key in view.queues()}


def test_a_file_that_was_lost_in_the_middle_of_a_repair_comes_back(tmp_path):
    made = HandMade(CONFIG)
    for number in range(60):
        made.put("T", number % 2, b"body %d" % number)
    root = made.write(tmp_path / "s")
    everything = held(root)
    log = root / COMMITLOG
    one, other = sorted(log.iterdir())[1:3]
    one.rename(log / "x")
    other.rename(one)
    (log / "x").rename(other)
    plan = repair(root)
    actions = [step.action for step in plan.steps]
    assert actions.count(Action.QUARANTINE) == actions.count(Action.BRING_BACK) == 2
    assert held(root) == everything
    assert wrong(root) == []
    # Killed between the two: one lies in the quarantine, as the manifest says.
    kept = next((root / "rmqctl" / "quarantine").iterdir())
    other.rename(kept / COMMITLOG / one.name)
    (step, *_) = repair(root).steps
    assert (step.action, step.file) == (Action.BRING_BACK, f"{COMMITLOG}/{other.name}")
    assert held(root) == everything
    assert wrong(root) == []


def test_what_no_unit_tells_of_becomes_records_without_a_queue(tmp_path):
    made = HandMade(CONFIG)
    for number in range(12):
        made.put("T", number % 2, b"body %d" % number)
    root = made.write(tmp_path / "s")
    gone = made.messages[4]
    for path in (root / "consumequeue" / "T" / "0").iterdir():
        path.unlink()
    with next(iter(sorted((root / COMMITLOG).iterdir()))).open("r+b") as file:
        file.seek(gone.commitlog_offset)
        file.write(bytes(gone.size))
    plan = repair(root)
    assert [step.action for step in plan.steps if step.file.startswith(COMMITLOG)] == [Action.FILL]
    assert wrong(root) == []
    assert len(held(root)) == 11


@pytest.mark.parametrize("damage_at", [0, 4])
def test_the_blank_record_of_the_newest_file_is_written_again(damage_at, tmp_path):
    """A writer died between the end of a file and the next one."""
    made = HandMade(CONFIG)
    while len(made.log) < CONFIG.mapped_file_size_commit_log:
        made.put("T", 0, b"body")
    last = made.messages.pop()
    end = last.commitlog_offset - CONFIG.mapped_file_size_commit_log
    made.queues["T", 0] = made.queues["T", 0][:-20]
    del made.log[CONFIG.mapped_file_size_commit_log :]
    root = made.write(tmp_path / "s")
    before = held(root)
    assert end == 0
    place = made.messages[-1].commitlog_offset + made.messages[-1].size
    with (root / COMMITLOG / f"{0:020d}").open("r+b") as file:
        file.seek(place + damage_at)
        file.write(b"\x01")
    plan = repair(root)
    assert plan.steps
    assert {step.action for step in plan.steps} <= {Action.BLANK, Action.CLEAR}
    assert wrong(root) == []
    assert held(root) == before


@pytest.mark.parametrize(
    "kind", ["log: a page zeroed", "log: a file in the middle cut", "log: a file too long"]
)
def test_what_a_snapshot_shares_with_the_store_is_not_written(kind, tmp_path):
    root = golden.extract("small-files-4.9", tmp_path)
    try:
        damage(root, kind)
    except NotHere as lack:
        pytest.fail(str(lack))
    shared = tmp_path / "shared"
    shared.mkdir()
    before = {}
    for file in (root / COMMITLOG).iterdir():
        (shared / file.name).hardlink_to(file)
        before[file.name] = file.read_bytes()
    repair(root)
    assert wrong(root) == []
    assert {file.name: file.read_bytes() for file in shared.iterdir()} == before
    assert any(file.read_bytes() != before.get(file.name) for file in (root / COMMITLOG).iterdir())
