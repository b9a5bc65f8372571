import fcntl
import json
import re
from pathlib import Path

import pytest

from storage.config import SMALL_STORE
from storage.detect import detect_config
from storage.layout import was_created_here
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support import golden, golden_samples
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.java_lock import java_lock

INFO_FIELDS = [
    *("path", "version", "clean_shutdown", "commitlog", "queues", "messages", "index_files"),
    *("first_timestamp", "last_timestamp", "checkpoint", "writers", "java_locked"),
]
FINDING_FIELDS = ["code", "severity", "file", "position", "what", "effect", "fix"]


# -- init


def test_init_makes_a_store_with_the_lengths_of_a_broker(tmp_path):
    root = tmp_path / "new" / "store"
    result = run("store", "init", root)
    assert result.code == 0, result.err
    config = detect_config(root)
    assert config.mapped_file_size_commit_log == 1 << 30
    assert config.mapped_file_size_consume_queue == 6_000_000
    assert config.index_file_size == 420_000_040
    assert was_created_here(root)
    assert result.err == f"created the store {root}\n"


def test_init_prints_what_a_java_broker_needs_to_open_it(tmp_path):
    result = run("store", "init", tmp_path / "s", "--small")
    assert result.lines == [
        f"storePathRootDir={tmp_path}/s",
        f"storePathCommitLog={tmp_path}/s/commitlog",
        "mappedFileSizeCommitLog=16777216",
        "mappedFileSizeConsumeQueue=600000",
        "maxHashSlotNum=50000",
        "maxIndexNum=200000",
    ]
    assert detect_config(tmp_path / "s").mapped_file_size_commit_log == 16 << 20
    row = run("store", "init", tmp_path / "t", "--small", "-o", "json").json()
    assert row["path"] == f"{tmp_path}/t"
    assert row["commitlog_file_bytes"] == 16 << 20
    assert len(row["broker_conf"]) == 6


@pytest.mark.feature(133)
def test_a_new_store_has_the_topics_of_a_broker_and_is_healthy(tmp_path):
    run("store", "init", tmp_path / "s")
    topics = json.loads((tmp_path / "s/config/topics.json").read_text())["topicConfigTable"]
    assert {"TBW102", "SELF_TEST_TOPIC", "SCHEDULE_TOPIC_XXXX"} <= set(topics)
    report = run("store", "fsck", "-o", "json", "-S", tmp_path / "s").json()
    assert (report["ok"], report["findings"]) == (True, [])


def test_init_without_a_folder_makes_the_named_or_the_users_store(tmp_path, own_home):
    assert run("store", "init", "-S", tmp_path / "named", "--small").code == 0
    assert (tmp_path / "named/commitlog").is_dir()
    assert run("store", "init", "--small").code == 0
    assert (own_home / "rmqctl/store/commitlog").is_dir()
    assert run("store", "init", tmp_path / "x", "-S", tmp_path / "y").code == 2


def test_an_empty_folder_will_do_and_one_that_holds_something_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    assert run("store", "init", tmp_path / "empty").code == 0
    again = run("store", "init", tmp_path / "empty")
    assert (again.code, again.raw) == (7, b"")
    assert "is a store already" in again.err
    (tmp_path / "full").mkdir()
    (tmp_path / "full/letter").write_text("dear")
    result = run("store", "init", tmp_path / "full")
    assert (result.code, result.err.count("\n")) == (7, 1)
    assert "is not empty" in result.err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter"]


def test_a_dry_run_makes_nothing(tmp_path):
    result = run("store", "init", tmp_path / "s", "-n")
    assert result.code == 0
    assert not (tmp_path / "s").exists()
    assert result.err == f"would create the store {tmp_path}/s\n"


def test_a_new_store_with_one_message_takes_little_of_the_disk(tmp_path):
    run("store", "init", tmp_path / "s")
    run("-S", tmp_path / "s", "produce", "t", stdin=b"hello\n")
    blocks = sum(path.stat().st_blocks for path in (tmp_path / "s").rglob("*"))
    assert blocks * 512 <= 48 << 20


# -- info


def info(root, *options):
    result = run("store", "info", "-o", "json", "-S", root, *options)
    assert result.code == 0, result.err
    return result.json()


def test_info_of_an_empty_store_has_nulls_for_what_is_unknown(store):
    facts = info(store)
    assert list(facts) == INFO_FIELDS
    assert facts["commitlog"] == {"min_offset": 0, "max_offset": 0, "files": 0, "bytes": 0}
    assert (facts["messages"], facts["queues"], facts["index_files"]) == (0, 0, 0)
    assert facts["first_timestamp"] is facts["last_timestamp"] is facts["checkpoint"] is None
    assert (facts["version"], facts["clean_shutdown"]) == ("rmqctl", True)


def test_info_counts_what_was_sent(store):
    run("produce", "t", stdin=b"a\nb\nc\n")
    facts = info(store)
    assert (facts["messages"], facts["queues"], facts["index_files"]) == (3, 3, 1)
    assert facts["commitlog"]["max_offset"] == facts["commitlog"]["bytes"] > 0
    assert facts["first_timestamp"] <= facts["last_timestamp"]
    assert facts["checkpoint"]["physic_msg_timestamp"] == facts["last_timestamp"]


@pytest.mark.feature(110)
@golden_samples.SOME
def test_info_of_golden_stores_agrees_with_rocketmq(name):
    facts = info(golden.store(name))
    manifest = golden.manifest(name)
    assert facts["clean_shutdown"] == manifest["cleanShutdown"]
    assert facts["version"] == ("5.x" if name.endswith("5.3") else "4.9")
    assert facts["commitlog"]["min_offset"] == manifest["minPhyOffset"]
    assert facts["commitlog"]["max_offset"] >= manifest["maxPhyOffset"]
    assert (facts["writers"], facts["java_locked"]) == ([], False)
    if manifest["cleanShutdown"] and "damage" not in manifest["facts"]:
        assert facts["commitlog"]["max_offset"] == manifest["maxPhyOffset"]


def test_info_names_the_writers(store):
    with MessageStore.open(store):
        facts = info(store)
        assert len(facts["writers"]) == 1
        assert facts["clean_shutdown"] is False
        assert facts["java_locked"] is False
    assert info(store)["writers"] == []


def test_info_tells_a_java_broker(store):
    with java_lock(store):
        facts = info(store)
    assert (facts["java_locked"], facts["writers"]) == (True, [])


def test_info_takes_no_lock(store):
    with (store / "lock").open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        assert info(store)["messages"] == 0


def test_parts_that_are_not_read_are_named_on_stderr(tmp_path):
    root = golden.extract("basic-4.9", tmp_path)
    (root / "batchconsumequeue/t").mkdir(parents=True)
    assert "batch consume queues of 5.x" in run("store", "info", "-S", root).err


# -- fsck


def fsck(root, *options, code=0):
    result = run("store", "fsck", "-o", "json", "-S", root, *options)
    assert result.code == code, result.err
    return result.json()


@pytest.fixture
def small_logs(tmp_path):
    """A closed store of several log files, of which one record can be damaged."""
    root = tmp_path / "logs"
    MessageStore.create(root, SMALL_STORE.with_(mapped_file_size_commit_log=16384))
    run("-S", root, "produce", "t", "--template", "%i " + "x" * 500, "-c", 100)
    run("-S", root, "produce", "u", stdin=b"a\n")
    return root


def damage(root, number, position):
    path = sorted((root / "commitlog").iterdir())[number]
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))
    return path.name


@pytest.mark.slow
def test_a_healthy_store_is_ok(store):
    run("produce", "t", stdin=b"a\nb\nc\n")
    run("consume", "t", "-g", "g", "-e")
    report = fsck(store)
    assert list(report) == ["ok", "checked", "findings", "left_out"]
    assert list(report["checked"]) == ["records", "units", "index_entries", "offsets", "files"]
    assert [report["checked"][name] for name in ("records", "units")] == [3, 3]
    assert report["checked"]["offsets"] >= 3
    plain = run("store", "fsck")
    assert plain.lines == ["\t".join(FINDING_FIELDS)]
    assert plain.err.startswith("checked 3 records, 3 units, ")
    assert plain.err.endswith("0 errors, 0 warnings\n")


@pytest.mark.feature(111)
def test_a_damaged_body_is_an_error_with_file_and_position(small_logs):
    name = damage(small_logs, 2, 100)
    report = fsck(small_logs, code=4)
    assert report["ok"] is False
    (finding,) = [f for f in report["findings"] if f["severity"] == "error"]
    assert list(finding) == FINDING_FIELDS
    assert (finding["code"], finding["file"]) == ("RECORD_DAMAGED", f"commitlog/{name}")
    assert finding["position"] == 0
    table = run("store", "fsck", "-S", small_logs, "-o", "csv", "--columns", "code,position")
    assert (table.code, table.lines) == (4, ["code,position", "RECORD_DAMAGED,0"])


def test_who_finds_something_is_told_where_codes_are_explained(small_logs):
    assert "explain" not in run("store", "fsck", "-S", small_logs).err
    path = next((small_logs / "commitlog").iterdir())
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    damaged = run("store", "fsck", "-S", small_logs)
    assert damaged.err.endswith("; 'rmqctl explain CODE' explains a finding\n")


@pytest.mark.slow
def test_fast_looks_at_files_ends_and_samples(small_logs):
    whole, quick = fsck(small_logs), fsck(small_logs, "--fast")
    assert quick["findings"] == whole["findings"] == []
    assert 0 < quick["checked"]["index_entries"] < whole["checked"]["index_entries"]
    damage(small_logs, 2, 100)  # the first record of a file
    (finding,) = fsck(small_logs, "--fast", code=4)["findings"]
    assert finding["code"] == "RECORD_DAMAGED"
    (small_logs / "commitlog" / f"{16384:020}").unlink()
    codes = {finding["code"] for finding in fsck(small_logs, "--fast", code=4)["findings"]}
    assert "LOG_FILE_MISSING" in codes


@pytest.mark.slow
def test_several_jobs_find_the_same(small_logs):
    for number in (0, 2, 3):
        damage(small_logs, number, 100)
    alone = fsck(small_logs, code=4)
    together = fsck(small_logs, "--jobs", 3, code=4)
    assert together["findings"] == alone["findings"]
    assert len(alone["findings"]) == 3
    assert together["checked"]["records"] == alone["checked"]["records"] == 98


def test_from_passes_over_log_files_of_before(small_logs):
    damage(small_logs, 0, 100)
    assert fsck(small_logs, "--from", "1970-01-01", code=4)["ok"] is False
    later = fsck(small_logs, "--from", "now")
    assert later["ok"] is True
    assert 0 < later["checked"]["records"] < 101


@pytest.mark.slow
def test_parts_and_topics_can_be_chosen(small_logs):
    queue = small_logs / "consumequeue/t/0" / f"{0:020d}"
    with queue.open("r+b") as file:
        file.write(bytes(20))
    report = fsck(small_logs, code=4)
    assert {finding["code"] for finding in report["findings"]} == {"UNIT_MISSING"}
    assert {finding["severity"] for finding in report["findings"]} == {"error"}
    fsck(small_logs, "--fail-on", "warning", code=4)
    fsck(small_logs, "--fail-on", "warning", "--only", "log,index,config", code=0)
    fsck(small_logs, "--fail-on", "warning", "--only", "queue", code=4)
    fsck(small_logs, "--fail-on", "warning", "--topic", "u", code=0)
    fsck(small_logs, "--fail-on", "warning", "-t", "u", "-t", "t", code=4)


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["--only", "log,foo"], 2, "--only: 'foo' is not one of log, queue"),
        (["--only", ""], 2, "--only: it names nothing"),
        (["--fail-on", "info"], 2, "--fail-on: 'info' is neither error nor warning"),
        (["--jobs", "0"], 2, "0 is not in the range"),
        (["--from", "yesterday-ish"], 2, "--from: "),
        (["--from", "now", "--resume"], 2, "--from and --resume exclude each other"),
        (["--only", "log", "--resume"], 2, "--only and --resume exclude each other"),
        (["--topic", "t", "--resume"], 2, "--topic and --resume exclude each other"),
        (["--fast", "--resume"], 2, "--fast and --resume exclude each other"),
        (["--topic", "nope"], 3, "topic nope does not exist in"),
    ],
)
def test_wrong_options_of_fsck_are_one_sentence(store, args, code, sentence):
    result = run("store", "fsck", *args)
    assert (result.code, result.err.count("\n"), result.raw) == (code, 1, b"")
    assert sentence in result.err


@pytest.mark.slow
def test_an_interrupted_check_is_resumed_where_it_stopped(small_logs, monkeypatch):
    from storage.tools.fsck.log import LogCheck

    damage(small_logs, 0, 100)
    records = LogCheck._records

    def interrupted(self, stretch):
        if stretch.start >= 2 * 16384:
            raise KeyboardInterrupt
        return records(self, stretch)

    with monkeypatch.context() as patched:
        patched.setattr(LogCheck, "_records", interrupted)
        stopped = run("store", "fsck", "-S", small_logs)
    assert stopped.code == 130
    found = re.fullmatch(r"stopped at log position (\d+); --resume continues there\n", stopped.err)
    assert found is not None
    assert 16384 < int(found[1]) <= 32768

    part = run("store", "fsck", "-S", small_logs, "--fast", "--only", "index")
    assert part.code == 0, "the place of the whole check stays"
    with monkeypatch.context() as patched:
        patched.setattr(LogCheck, "_records", interrupted)
        again = run("store", "fsck", "-S", small_logs, "--resume")
        of_index = run("store", "fsck", "-S", small_logs, "--only", "index")
    assert (again.code, again.err.splitlines()[-1]) == (130, stopped.err.rstrip("\n"))
    assert (of_index.code, of_index.err) == (130, ""), "a check of a part is not resumed"
    resumed = run("store", "fsck", "-S", small_logs, "--resume", "-o", "json")
    assert resumed.code == 4, "the damage lies before the place"
    assert f"continuing at log position {found[1]}" in resumed.err
    again = run("store", "fsck", "-S", small_logs, "--resume", "-o", "json")
    assert again.code == 4
    assert again.json() == resumed.json()
    assert "no check of this store was interrupted" in again.err


@pytest.mark.slow
@pytest.mark.parametrize("mend", [("rebuild", "queue"), ("repair",)])
def test_a_check_is_not_resumed_after_a_repair(small_logs, monkeypatch, mend):
    from storage.tools.fsck.log import LogCheck

    records = LogCheck._records
    [queue, *_] = sorted((small_logs / "consumequeue").rglob("0*"), key=lambda path: path.is_dir())
    with queue.open("r+b") as file:
        file.write(bytes(20))

    def interrupted(self, stretch):
        if stretch.start >= 2 * 16384:
            raise KeyboardInterrupt
        return records(self, stretch)

    with monkeypatch.context() as patched:
        patched.setattr(LogCheck, "_records", interrupted)
        assert run("store", "fsck", "-S", small_logs).code == 130
    mended = run("store", *mend, "-S", small_logs, "--execute", "--yes")
    assert mended.code == 0, mended.err
    resumed = run("store", "fsck", "-S", small_logs, "--resume")
    assert resumed.code == 0, resumed.err
    assert "the store has changed before log position" in resumed.err


@pytest.mark.slow
@pytest.mark.feature(126)
def test_fsck_runs_beside_a_writer_and_changes_nothing(small_logs):
    with MessageStore.open(small_logs):
        before = facts_of(small_logs)
        report = fsck(small_logs)
        assert facts_of(small_logs) == before
    assert report["ok"] is True
    assert [finding["code"] for finding in report["findings"]] == ["NOT_CLOSED"]


def facts_of(root):
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in Path(root).rglob("*")
    }


@pytest.mark.feature(111, 112)
@pytest.mark.parametrize("name", [name for name in golden.names() if name.startswith("torn-")])
def test_torn_stores_are_checked_and_not_touched(name):
    root = golden.store(name)
    before = facts_of(root)
    result = run("store", "fsck", "-S", root, "-o", "json")
    assert result.code == (0 if result.json()["ok"] else 4)
    assert facts_of(root) == before
    kind = golden.manifest(name)["facts"]["kind"]
    lost = {"bad-crc-middle", "clean-bad-crc-last", "bad-properties", "clean-queue-missing"}
    assert result.json()["ok"] is (kind not in lost)


@pytest.mark.slow
@pytest.mark.feature(109)
def test_the_whole_of_a_store_may_be_copied_and_checked(small_logs, tmp_path):
    copy = tmp_path / "copy"
    copy_store(small_logs, copy)
    assert fsck(copy)["checked"] == fsck(small_logs)["checked"]
    with StoreView.open(copy) as view:
        assert view.log_max_offset() == info(small_logs)["commitlog"]["max_offset"]


def test_the_folder_of_a_new_store_may_be_named_twice_but_not_two_folders(tmp_path):
    again = run("-S", tmp_path / "n", "store", "init", tmp_path / "n", "--small")
    assert again.code == 0, again.err
    two = run("-S", tmp_path / "a", "store", "init", tmp_path / "b", "--small")
    assert two.code == 2
    assert "are two folders; give one" in two.err
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
