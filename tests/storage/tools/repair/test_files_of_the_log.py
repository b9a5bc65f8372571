"""Log files that are empty, cut short, gone, or none at all: reported, and repaired in one run."""

import json
import os
import shutil

import pytest

from storage.errors import CorruptFileError, IncompleteStoreWarning, StoreNotWritableError
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Code, Severity, fsck
from storage.tools.quarantine import read_manifest
from storage.tools.repair.plan import make_plan
from storage.tools.repair.steps import Action
from tests.support.cli import run
from tests.support.hand_made import TINY
from tests.support.java_lock import java_lock
from tests.support.mended import held, repair, wrong
from tests.support.samples import Sample, prepared

SIZE = 16384
CONFIG = TINY.with_(mapped_file_size_commit_log=SIZE, mapped_file_size_consume_queue=6000)
QUEUES = ((("T", 0), 200), (("T", 1), 100), (("Rare", 0), 3))
READS = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")


@pytest.fixture
def root(tmp_path):
    """A cleanly closed store of several log files; "Rare" is only in the last one."""
    root = tmp_path / "s"
    MessageStore.create(root, CONFIG)
    with MessageStore.open(root) as store:
        for number in range(200):
            put(store, "T", 0)
            if number % 2:
                put(store, "T", 1)
            if number > 196:
                put(store, "Rare", 0)
    assert len(logs(root)) >= 4
    return root


def put(store, topic, queue_id, *, without_keys=False):
    """Store a message; gives its queue offset."""
    message = Sample("m", topic, queue_id, 150).inner()
    if without_keys:
        message = message._replace(keys=(), properties=b"")
    return store.put_message(message).queue_offsets[0]


def logs(root):
    return sorted((root / "commitlog").iterdir())


def empty(path):
    with path.open("r+b") as file:
        file.truncate(0)


def goes_on(root):
    """A writer opens it, and what it stores follows what was there; gives the queues' ends."""
    with MessageStore.open(root) as store:
        with StoreView.open(root) as view:
            ends = {key: view.max_offset_in_queue(*key) for key, _ in QUEUES}
        for (topic, queue_id), end in ends.items():
            assert put(store, topic, queue_id) == end
    assert wrong(root) == []
    return ends


@pytest.mark.slow
@READS
@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_log_file_without_a_byte_is_told_as_one_and_mended_as_a_missing_one(root, number):
    before = held(root)
    gone = logs(root)[number]
    empty(gone)
    (finding,) = wrong(root)
    assert (finding.code, finding.severity) == (Code.LOG_FILE_MISSING, Severity.ERROR)
    assert finding.file == f"commitlog/{gone.name}"
    assert finding.what.startswith("the file has 0 bytes")
    first = int(gone.name)
    repair(root)
    assert wrong(root) == []
    lost = range(first, first + SIZE)
    assert held(root) == {k: m for k, m in before.items() if m.commitlog_offset not in lost}
    assert goes_on(root) == dict(QUEUES)


def test_an_empty_file_behind_the_end_is_put_away(root):
    before = held(root)
    ahead = root / "commitlog" / f"{int(logs(root)[-1].name) + SIZE:020}"
    ahead.touch()
    repair(root)
    assert not ahead.exists()
    assert wrong(root) == []
    assert held(root) == before
    goes_on(root)


def test_a_far_file_of_zeros_is_put_away_in_one_run(root):
    before, kept = held(root), [path.name for path in logs(root)]
    (root / "commitlog" / f"{int(kept[-1]) + 9 * SIZE:020}").write_bytes(bytes(1000))
    plan = repair(root)
    assert [step.action for step in plan.steps if step.action is not Action.REBUILD_INDEX] == [
        Action.QUARANTINE
    ]
    assert [path.name for path in logs(root)] == kept
    assert wrong(root) == []
    assert held(root) == before
    goes_on(root)


@pytest.mark.parametrize("ahead", [1, 3], ids=["next", "far"])
def test_too_long_a_file_of_zeros_behind_the_end_is_put_away_as_it_is(root, ahead):
    before = held(root)
    path = root / "commitlog" / f"{int(logs(root)[-1].name) + ahead * SIZE:020}"
    path.write_bytes(bytes(SIZE + 100))
    repair(root)
    assert not path.exists()
    (run,) = (root / "rmqctl" / "quarantine").iterdir()
    (moved,) = [piece for piece in read_manifest(run) if piece["kind"] == "moved"]
    assert moved["length"] == SIZE + 100
    assert wrong(root) == []
    assert held(root) == before
    goes_on(root)


@pytest.mark.parametrize("length", [SIZE // 2, SIZE + 100], ids=["short", "long"])
def test_a_misplaced_file_of_another_length_is_mended_in_one_run(root, length):
    before, (first, second, *_) = held(root), logs(root)
    second.write_bytes((first.read_bytes() + bytes(100))[:length])
    repair(root)
    assert wrong(root) == []
    lost = range(SIZE, 2 * SIZE)
    assert held(root) == {k: m for k, m in before.items() if m.commitlog_offset not in lost}
    assert goes_on(root) == dict(QUEUES)


@pytest.mark.parametrize("torn", [False, True], ids=["whole", "torn"])
def test_a_last_file_with_bytes_past_its_length_is_mended_in_one_run(root, torn):
    before, last = held(root), logs(root)[-1]
    with last.open("r+b") as file:
        if torn:
            file.seek(SIZE - 100)
            file.write(b"torn")
        file.seek(SIZE)
        file.write(b"behind the end")
    repair(root)
    assert last.stat().st_size == SIZE
    assert wrong(root) == []
    assert held(root) == before
    assert goes_on(root) == dict(QUEUES)


@READS
def test_a_log_of_which_only_the_quarantine_has_a_file_is_brought_back_there(root):
    last = logs(root)[-1]
    run = root / "rmqctl" / "quarantine" / "20260101T000000Z-1"
    kept = run / "commitlog" / f"{SIZE:020}"
    kept.parent.mkdir(parents=True)
    last.rename(kept)
    piece = {"why": "RECORD_MISPLACED", "kind": "moved", "kept": f"commitlog/{kept.name}"}
    (run / "manifest.jsonl").write_text(json.dumps(piece) + "\n")
    shutil.rmtree(root / "commitlog")
    plan = repair(root)
    assert Action.BRING_BACK in {step.action for step in plan.steps}
    assert last.exists()
    assert wrong(root) == []
    goes_on(root)


@pytest.mark.parametrize("length", [10, 100])
def test_a_last_file_cut_within_its_first_record_has_lost_the_logs_end(root, length):
    last = logs(root)[-1]
    with last.open("r+b") as file:
        file.truncate(length)
    (finding,) = wrong(root)
    assert (finding.code, finding.severity) == (Code.LOG_TAIL_LOST, Severity.ERROR)
    assert f"the file has {length} bytes" in finding.what
    repair(root)
    assert wrong(root) == []
    with StoreView.open(root) as view:
        codes = {f.code for f in fsck(view).findings}
    assert Code.STORE_TIME_BACK not in codes
    assert goes_on(root) == dict(QUEUES)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "crashed"])
@pytest.mark.parametrize("missing", [1, 2, 100], ids=["one", "two", "all"])
def test_lost_last_files_are_given_up_and_queues_keep_their_ends(root, missing, closed):
    before, last = held(root), logs(root)[-missing:]
    for path in last:
        path.unlink()
    if missing == 100:
        (root / "commitlog").rmdir()
    if not closed:
        (root / "abort").touch()
    with pytest.raises(CorruptFileError, match="storePathCommitLog"):
        MessageStore.open(root)
    with pytest.warns(IncompleteStoreWarning):
        (finding,) = [f for f in wrong(root) if f.severity is Severity.ERROR]
    assert finding.code is Code.LOG_FILE_MISSING
    assert finding.file == f"commitlog/{last[0].name}"
    assert "refused" in finding.effect
    assert "storePathCommitLog" in finding.fix
    with pytest.warns(IncompleteStoreWarning):
        plan = repair(root)
    gone = [message for message in before.values() if message.commitlog_offset >= int(last[0].name)]
    assert sum(step.lost or 0 for step in plan.steps) == len(gone)
    assert wrong(root) == []
    assert goes_on(root) == dict(QUEUES)


@READS
@pytest.mark.parametrize("goes_on", [True, False], ids=["middle", "last"])
def test_all_queues_of_a_record_in_a_lost_file_keep_their_ends(tmp_path, goes_on):
    """Also where one of them ends later."""
    root = tmp_path / "s"
    MessageStore.create(root, CONFIG)

    def fill(store, end):
        while store.log_end < end:
            put(store, "T", 0)

    with MessageStore.open(root) as store:
        fill(store, SIZE + 4000)
        for queue_id, light in (0, ("%LMQ%x",)), (1, ("%LMQ%y", "all")), (1, ("%LMQ%x",)):
            store.put(prepared([Sample("m", "orders", queue_id, light=light)]))
        fill(store, SIZE + 6000)
        if goes_on:
            fill(store, 2 * SIZE + 4000)
            put(store, "orders", 1)
    with StoreView.open(root) as view:
        ends = {key: view.max_offset_in_queue(*key) for key in view.queues()}
    assert set(ends) >= {("orders", 0), ("orders", 1), ("%LMQ%x", 0), ("%LMQ%y", 0), ("all", 1)}
    logs(root)[1].unlink()
    repair(root)
    assert wrong(root) == []
    with StoreView.open(root) as view:
        assert {key: view.max_offset_in_queue(*key) for key in view.queues()} == ends
    with MessageStore.open(root) as store:
        for topic, queue_id in ends:
            assert put(store, topic, queue_id) == ends[topic, queue_id]


@READS
def test_lost_last_files_of_one_queue_without_keys_are_an_error_too(tmp_path):
    root = tmp_path / "s"
    MessageStore.create(root, CONFIG)
    with MessageStore.open(root) as store:
        for _ in range(150):
            put(store, "T", 0, without_keys=True)
    logs(root)[-1].unlink()
    (finding,) = wrong(root)
    assert (finding.code, finding.severity) == (Code.LOG_FILE_MISSING, Severity.ERROR)
    repair(root)
    assert wrong(root) == []


@READS
def test_lost_last_files_are_an_error_beside_a_java_broker_too(root):
    shutil.rmtree(root / "rmqctl" / "kept", ignore_errors=True)
    logs(root)[-1].unlink()
    with java_lock(root), StoreView.open(root) as view:
        codes = [f.code for f in fsck(view).findings if f.severity is Severity.ERROR]
    assert codes == [Code.LOG_FILE_MISSING]


def number_of_none(root):
    path = root / "commitlog" / f"{1:020}"
    path.write_bytes(b"x\n")
    return path


def folder_of_the_log(root):
    path = root / "commitlog" / f"{int(logs(root)[-1].name) + SIZE:020}"
    path.mkdir()
    (path / "inside").write_bytes(b"mine")
    return path


def link_of_the_log(root):
    path = root / "commitlog" / f"{int(logs(root)[-1].name) + SIZE:020}"
    path.symlink_to("/nowhere/to/be/found")
    return path


def link_below_a_file(root):
    path = root / "commitlog" / f"{int(logs(root)[-1].name) + SIZE:020}"
    path.symlink_to(root / "checkpoint" / "below")
    return path


def pipe_of_the_log(root):
    path = root / "commitlog" / f"{int(logs(root)[-1].name) + SIZE:020}"
    os.mkfifo(path)
    return path


def pipe_of_a_queue(root):
    path = root / "consumequeue" / "T" / "0"
    shutil.rmtree(path)
    os.mkfifo(path)
    return path


def link_of_a_queue(root):
    path = root / "consumequeue" / "T" / "0" / f"{12000:020}"
    path.symlink_to("/nowhere/to/be/found")
    return path


def file_of_a_queue(root):
    path = root / "consumequeue" / "T" / "0"
    shutil.rmtree(path)
    path.write_bytes(b"hi\n")
    return path


def folder_of_the_checkpoint(root):
    path = root / "checkpoint"
    path.unlink()
    path.mkdir()
    return path


def folder_of_the_index(root):
    path = root / "index" / "20991231235959999"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    "put_there",
    [
        number_of_none,
        folder_of_the_log,
        link_of_the_log,
        link_below_a_file,
        pipe_of_the_log,
        pipe_of_a_queue,
        link_of_a_queue,
        file_of_a_queue,
        folder_of_the_checkpoint,
        folder_of_the_index,
    ],
    ids=lambda put: put.__name__,
)
def test_what_keeps_writers_out_is_an_error_and_is_moved_away(root, put_there):
    before = held(root)
    path = put_there(root)
    (root / "rmqctl" / "shared").unlink()  # as in a copy: a writer reads the files
    with pytest.raises((CorruptFileError, StoreNotWritableError)) as refusal:
        MessageStore.open(root)
    assert path.name in str(refusal.value)
    assert "its length" not in str(refusal.value)
    (finding,) = [f for f in wrong(root) if f.severity is Severity.ERROR]
    assert (finding.code, finding.file) == (Code.FOREIGN_FILE, str(path.relative_to(root)))
    assert "rmqctl store repair" in finding.fix
    repair(root)
    (run,) = (root / "rmqctl" / "quarantine").iterdir()
    (moved,) = [piece for piece in read_manifest(run) if piece["why"] == "FOREIGN_FILE"]
    assert moved["path"] == str(path.relative_to(root))
    assert (run / str(moved["kept"])).is_symlink() or (run / str(moved["kept"])).exists()
    assert wrong(root) == []
    assert held(root) == before
    goes_on(root)


@pytest.mark.parametrize("name", ["commitlog/notes.txt", "consumequeue/.DS_Store", "index/x"])
def test_a_harmless_file_is_no_error_and_stays(root, name):
    (root / name).write_bytes(b"mine")
    assert wrong(root) == []
    with StoreView.open(root) as view:
        report = fsck(view)
        assert [(f.code, f.file) for f in report.findings] == [(Code.FOREIGN_FILE, name)]
        assert make_plan(view, report, 1).steps == []
    goes_on(root)


def test_a_file_in_a_topics_place_is_moved_away_and_its_queues_are_made_again(root):
    before = held(root)
    shutil.rmtree(root / "consumequeue" / "T")
    (root / "consumequeue" / "T").write_bytes(b"hi")
    errors = [f for f in wrong(root) if f.severity is Severity.ERROR]
    assert {f.code for f in errors} == {Code.FOREIGN_FILE, Code.UNIT_MISSING}
    (finding,) = [f for f in errors if f.code is Code.FOREIGN_FILE]
    assert finding.file == "consumequeue/T"
    repair(root)
    assert wrong(root) == []
    assert held(root) == before
    goes_on(root)


@pytest.mark.parametrize("name", ["checkpoint", "abort"])
def test_a_pipe_in_the_place_of_a_file_of_the_root_is_moved_away(root, name):
    """Opening it would wait for its other end."""
    before = held(root)
    (root / name).unlink(missing_ok=True)
    os.mkfifo(root / name)
    (finding,) = wrong(root)
    assert (finding.code, finding.file) == (Code.FOREIGN_FILE, name)
    repair(root)
    assert not (root / name).is_fifo()
    assert wrong(root) == []
    assert held(root) == before
    goes_on(root)


def test_a_link_to_itself_is_in_the_way_of_the_checkpoint(root):
    (root / "checkpoint").unlink()
    (root / "checkpoint").symlink_to("checkpoint")
    (finding,) = [f for f in wrong(root) if f.severity is Severity.ERROR]
    assert (finding.code, finding.file) == (Code.FOREIGN_FILE, "checkpoint")
    repair(root)
    assert wrong(root) == []
    goes_on(root)


def test_a_folder_in_the_locks_place_is_left_to_a_person(root):
    (root / "lock").unlink()
    (root / "lock").mkdir()
    (finding,) = wrong(root)
    assert (finding.code, finding.file) == (Code.FOREIGN_FILE, "lock")
    assert finding.fix == "move it away"
    with StoreView.open(root) as view:
        (step,) = make_plan(view, fsck(view), 1).steps
    assert step.action is Action.NONE
    assert "move it away" in step.what


def test_settings_are_made_in_a_folder_that_is_gone(root):
    assert run("topic", "create", "T", "--queues", 2, "-S", root).code == 0
    shutil.rmtree(root / "config")
    repair(root)
    assert wrong(root) == []
    assert (root / "config" / "topics.json").exists()
