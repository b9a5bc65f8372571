"""A store is described, checked and repaired through the library, with progress, and stopped."""

import os

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import store as admin
from rmqctl.admin.changes import Change, journal_note
from rmqctl.admin.store.repair_rows import RepairRow
from rmqctl.errors import CliError, NotFound, Refused
from rmqctl.exit_codes import DAMAGED
from storage.config import SMALL_STORE
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.configs.topics import TopicConfig
from storage.errors import StoreChangedError, StoreInUseError
from storage.format.message import Message
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Finding, Report
from tests.support import golden
from tests.support.hand_made import TINY, HandMade
from tests.support.java_lock import java_lock

NOTE = journal_note("test", reason="to see")
FILE_SIZE = 16384


@pytest.fixture
def logs(tmp_path):
    """A closed store of several log files."""
    root = tmp_path / "logs"
    MessageStore.create(root, SMALL_STORE.with_(mapped_file_size_commit_log=FILE_SIZE))
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        for _ in range(100):
            broker.send(Message("t", bytes(500)))
    return root


@pytest.fixture
def made():
    made = HandMade(TINY.with_(mapped_file_size_commit_log=4096))
    for number in range(6):
        made.put("T", number % 2, b"body %d" % number)
    return made


@pytest.fixture
def damaged(made, tmp_path):
    """A closed store; the body of its third message is damaged."""
    root = made.write(tmp_path / "s")
    flip(root, made.messages[2].commitlog_offset + 88)
    return root


def flip(root, position):
    first = min((root / "commitlog").iterdir())
    with first.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def files(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


class Shown:
    """Takes progress; with ``until`` it stops the work after so many bytes."""

    class Stop(Exception):
        """The work is stopped."""

    def __init__(self, until=None):
        self.until = until
        self.parts = []

    def __call__(self, label, total):
        part = {"label": label, "total": total, "done": 0}
        self.parts.append(part)

        def tick(count):
            part["done"] += count
            if self.until is not None and part["done"] >= self.until:
                raise self.Stop

        return tick


# -- facts --------------------------------------------------------------------------------------


def test_the_facts_of_a_real_brokers_store():
    root = golden.store("basic-4.9")
    with StoreView.open(root) as view:
        facts = admin.info(view)
        assert facts.commitlog["max_offset"] == view.log_max_offset()
    assert (facts.path, facts.writers, facts.java_locked) == (str(root), [], False)
    assert facts.messages > 0


def test_the_facts_count_what_was_sent(logs):
    with StoreView.open(logs) as view:
        facts = admin.info(view)
    assert (facts.messages, facts.queues, facts.clean_shutdown) == (100, 1, True)
    assert facts.commitlog["files"] == len(list((logs / "commitlog").iterdir()))


def test_the_processes_with_an_open_store_are_named(logs):
    assert admin.writers(logs) == ((), False)
    admin.refuse_writers(logs)
    with MessageStore.open(logs):
        assert admin.writers(logs).writers == (os.getpid(),)
        with pytest.raises(Refused, match=f"process {os.getpid()} has .* open for writing"):
            admin.refuse_writers(logs)
    with java_lock(logs):
        assert admin.writers(logs).java_locked
        admin.refuse_writers(logs)  # about a Java broker there is refuse_beside_java


# -- check --------------------------------------------------------------------------------------


def test_a_healthy_store_is_checked_with_progress(logs, ask):
    shown = Shown()
    before = files(logs)
    report = admin.check(*ask(logs)).run(shown)
    assert report.ok
    assert report.checked.records >= 100
    [part] = shown.parts
    assert part["label"] == "fsck"
    assert part["done"] == part["total"] > 0
    row = admin.check_row(report)
    assert (row.ok, row.checked["units"], row.left_out) == (True, 100, None)
    assert files(logs) == before


def test_findings_are_rows_and_are_given_as_they_come(damaged, made, ask):
    found: list[Finding] = []
    report = admin.check(*ask(damaged), on_finding=found.append).run()
    assert (report.ok, report.errors) == (False, 1)
    rows = admin.finding_rows(report)
    assert [row.code for row in rows] == [finding.code for finding in found]
    [row] = [row for row in rows if row.severity == "error"]
    assert (row.code, row.position) == ("RECORD_DAMAGED", made.messages[2].commitlog_offset)
    assert admin.check_row(report).findings == rows
    limited = admin.check(*ask(damaged), max_findings=1).run()
    assert (len(limited.findings), limited.errors) == (1, 1)


@pytest.mark.slow
def test_parts_topics_and_a_time_are_chosen(damaged, logs, ask):
    assert admin.check(*ask(damaged), parts=["queue", "config"]).run().ok
    assert not admin.check(*ask(damaged), parts=["log"], jobs=2).run().ok
    view, broker = ask(logs)
    shown = Shown()
    assert admin.check(view, broker, topics=["t"], fast=True).run(shown).ok
    assert shown.parts == [], "the log is not read as a whole"
    now = view.store_timestamp("t", 0, 99)
    later = admin.check(view, broker, from_timestamp=now + 1)
    assert later.start == view.log_max_offset() // FILE_SIZE * FILE_SIZE
    assert later.run().checked.records < 100
    with pytest.raises(NotFound, match="topic none does not exist"):
        admin.check(view, broker, topics=["none"])


def test_a_check_is_stopped_and_continued(logs, ask, tmp_path):
    flip(logs, 100)
    view, broker = ask(logs)
    check = admin.check(view, broker)
    with pytest.raises(Shown.Stop):
        check.run(Shown(until=2 * FILE_SIZE))
    assert check.has_moved
    assert 2 * FILE_SIZE <= check.reached < view.log_max_offset()

    place = admin.CheckPlace(tmp_path / "state", logs)
    assert place.read() is None
    assert check.kept is not None
    assert place.keep(check.kept)
    assert admin.CheckPlace(tmp_path / "state", logs.with_name("another")).read() is None
    kept = place.read()
    shown = Shown()
    rest = admin.check(view, broker, resume_from=kept)
    assert (rest.resumed, rest.reached) == (True, check.reached)
    report = rest.run(shown)
    assert report == admin.check(view, broker).run(), "the damage lies before"
    assert not report.ok

    flip(logs, 100)
    gone = admin.check(view, broker, resume_from=kept)
    assert not gone.resumed, "the file was replaced"
    assert gone.run().ok
    place.forget()
    assert place.read() is None


# -- repair -------------------------------------------------------------------------------------


def bodies(root):
    with StoreView.open(root) as view:
        return [
            message.body
            for queue in (0, 1)
            for message in view.get_message("T", queue, 0, 32).messages
        ]


def plan_of(root, **options):
    with StoreView.open(root) as view:
        return admin.repair(view, **options)


@pytest.mark.slow
def test_a_damaged_record_is_replaced_and_the_store_is_checked_again(damaged, made):
    before = files(damaged)
    shown = Shown()
    reports: list[Report] = []
    change = plan_of(damaged, phase=shown, checked=reports.append)
    assert isinstance(change, Change)
    (row,) = change.plan
    assert (row.step, row.action, row.why) == (1, "REPLACE", "RECORD_DAMAGED")
    assert (row.position, row.lost_messages) == (made.messages[2].commitlog_offset, 1)
    assert change.question == f"Repair {damaged} in 1 steps?"
    assert change.summary == (
        "1 message stays unreadable",
        "overwritten or removed data is kept in rmqctl/quarantine/",
    )
    change.check()
    assert files(damaged) == before
    assert [row.applied for row in change.apply(NOTE).rows] == [True]
    assert [(report.errors, report.warnings) for report in reports] == [(0, 0)]
    assert [part["label"] for part in shown.parts] == ["fsck", "fsck"]
    assert bodies(damaged) == [b"body 0", b"body 4", b"body 1", b"body 3", b"body 5"]
    *_, entry = Journal(damaged).entries()
    assert {name: entry[name] for name in NOTE} == NOTE
    assert (entry["what"], entry["new"]) == ("repair", {"REPLACE": 1})
    assert plan_of(damaged).plan == []


def test_a_repair_is_refused_beside_writers(damaged):
    change = plan_of(damaged)
    (damaged / "lock").touch()
    with java_lock(damaged), pytest.raises(StoreInUseError):
        change.check()
    with MessageStore.open(damaged), pytest.raises(Refused):
        change.check()
    with java_lock(damaged), pytest.raises(StoreInUseError):
        list(change.apply(NOTE).rows)


def test_a_plan_of_an_older_log_is_not_carried_out(logs):
    flip(logs, 100)
    change = plan_of(logs, java_check=lambda: None)
    with EmbeddedBroker.open(logs) as broker:
        broker.send(Message("t", b"later"))
    before = files(logs)
    for step in (change.check, lambda: list(change.apply(NOTE).rows)):
        with pytest.raises(StoreChangedError):
            step()
    assert files(logs) == before


@pytest.mark.slow
def test_what_repair_cannot_fix_is_refused_or_left(damaged):
    (damaged / "config").mkdir(exist_ok=True)
    (damaged / "config" / "consumerOffset.json").write_text('{"offsetTable":')
    change = plan_of(damaged, parts=["config"])
    assert [row.action for row in change.plan] == ["NONE"]
    with pytest.raises(CliError, match="repair cannot fix this") as raised:
        change.apply(NOTE)
    assert raised.value.exit_code == DAMAGED
    rows: list[RepairRow] = []
    with pytest.raises(CliError, match="errors are left"):
        rows.extend(plan_of(damaged).apply(NOTE).rows)
    assert [(row.action, row.applied) for row in rows] == [("REPLACE", True), ("NONE", False)]


def test_lost_progress_comes_back_with_a_repair(orders, offsets_of):
    path = ProgressFile(orders).path
    whole = path.read_bytes()
    table, end, rest = whole.partition(b"\n")
    path.write_bytes(table[:-10] + end + rest)
    change = plan_of(orders, parts=["offset"])
    assert "RECOVER" in {row.action for row in change.plan}
    rows = list(change.apply(NOTE).rows)
    assert all(row.applied for row in rows)
    assert offsets_of()[0] == 5


def test_a_repair_is_stopped_while_it_plans(damaged):
    before = files(damaged)
    with pytest.raises(Shown.Stop):
        plan_of(damaged, phase=Shown(until=1))
    assert files(damaged) == before
