"""Care of a store through the library: files deleted, restored and recovered; settings changed."""

import errno
import os
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import broker as broker_admin, store as admin
from rmqctl.admin.changes import Change, journal_note
from rmqctl.errors import CliError, PartlyDone, Refused, UsageProblem
from rmqctl.exit_codes import CHANGED, DAMAGED
from storage.config import SMALL_STORE
from storage.configs.journal import Journal
from storage.configs.store_settings import read_store_settings
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from storage.errors import (
    NoSnapshotError,
    StoreChangedError,
    StoreInUseError,
    StoreNotWritableError,
)
from storage.format.message import Message
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.snapshot.snapshot import take_snapshot
from tests.support.java_lock import java_lock

NOTE = journal_note("test", reason="to see")
NOW = 1_767_225_600_000


def noted(root) -> Any:
    """The last entry of the journal."""
    *_, entry = Journal(root).entries()
    assert {name: entry[name] for name in NOTE} == NOTE
    return entry


@pytest.fixture
def full(tmp_path):
    """A log of many files that were last written long ago."""
    root = tmp_path / "s"
    MessageStore.create(root, SMALL_STORE.with_(mapped_file_size_commit_log=16384))
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        for _ in range(60):
            broker.send(Message("t", bytes(4000)))
    for path in (root / "commitlog").iterdir():
        os.utime(path, (1, 1))
    return root


def names(root):
    return sorted(path.name for path in (root / "commitlog").iterdir())


def test_expired_files_are_deleted_but_for_the_newest(full, ask):
    logs = names(full)
    change = admin.clean(*ask(full), now_ms=NOW)
    assert isinstance(change, Change)
    assert [row.file for row in change.plan] == [f"commitlog/{name}" for name in logs[:-1]]
    assert len(logs) > 11, "more than one run of the cleaning service deletes"
    assert change.question == f"Delete {len(logs) - 1} files of the log?"
    assert names(full) == logs
    rows = list(change.apply(NOTE).rows)
    assert all(row.applied for row in rows)
    assert {row.file for row in rows} >= {row.file for row in change.plan}
    assert names(full) == logs[-1:]
    assert noted(full)["old"] == [row.file for row in change.plan]
    assert admin.clean(*ask(full), now_ms=NOW).plan == []


@pytest.mark.parametrize("files", [1, 3])
def test_files_that_come_of_age_after_the_plan_stay(full, ask, files):
    logs = names(full)
    for name in logs[1:]:
        os.utime(full / "commitlog" / name)
    warnings: list[str] = []
    change = admin.clean(*ask(full), warn=warnings.append)
    assert [row.file for row in change.plan] == [f"commitlog/{logs[0]}"]
    for name in logs[1 : 1 + files]:
        os.utime(full / "commitlog" / name, (1, 1))
    rows = list(change.apply(NOTE).rows)
    assert [(row.file, row.applied) for row in rows if row.kind == "log"] == [
        (f"commitlog/{logs[0]}", True)
    ]
    assert names(full) == logs[1:]
    what = "1 more file of the log is" if files == 1 else "3 more files of the log are"
    it = "it" if files == 1 else "them"
    assert warnings == [
        f"{what} old enough now, but not part of the plan; run the command again to see {it}"
    ]


def test_a_plan_of_nothing_deletes_nothing(full, ask):
    logs = names(full)
    for name in logs:
        os.utime(full / "commitlog" / name)
    change = admin.clean(*ask(full))
    for name in logs:
        os.utime(full / "commitlog" / name, (1, 1))
    assert list(change.apply(NOTE).rows) == []
    assert names(full) == logs


@pytest.fixture
def snapshot(orders, tmp_path):
    """A snapshot of the store of orders."""
    target = tmp_path / "snap"
    take_snapshot(orders, target, now_ms=NOW)
    return target


def messages(root):
    with StoreView.open(root) as view:
        return [message.body for message in view.get_message("orders", 0, 0, 32).messages]


def test_a_store_is_created_from_a_snapshot(snapshot, orders, tmp_path):
    target = tmp_path / "new"
    change = admin.restore(snapshot, target, now_ms=NOW)
    assert (change.occupied, change.confirm_name) == (False, None)
    assert {row.action for row in change.plan} == {"write"}
    change.verify()
    assert not target.exists()
    assert {row.applied for row in change.apply(NOTE).rows} == {True}
    assert messages(target) == messages(orders)
    assert noted(target)["new"]["snapshot"] == str(snapshot)


@pytest.mark.slow
def test_an_old_store_is_moved_aside_if_it_is_confirmed_and_not_in_use(snapshot, orders):
    change = admin.restore(snapshot, orders, now_ms=NOW)
    assert (change.occupied, change.confirm_name) == (True, orders.name)
    with MessageStore.open(orders), pytest.raises(StoreInUseError):
        change.check()
    with java_lock(orders), pytest.raises(StoreInUseError):
        change.apply(NOTE)
    (aside, *_) = change.apply(NOTE).rows
    assert (aside.part, aside.applied) == ("old store", True)
    assert messages(aside.path) == messages(orders)


def test_what_is_no_place_for_a_store_is_refused(snapshot, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    for target, error in {
        "mine": Refused,
        "snap": Refused,
        "mine/letter": CliError,
        "no/store": CliError,
    }.items():
        with pytest.raises(error):
            admin.restore(snapshot, tmp_path / target)
    with pytest.raises(NoSnapshotError):
        admin.restore(tmp_path / "none", tmp_path / "new")


def test_a_damaged_snapshot_is_found(snapshot, tmp_path):
    path = next(path for path in (snapshot / "commitlog").iterdir())
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(60)
        file.write(b"XXXX")
    with pytest.raises(CliError, match="is damaged: .*/commitlog/0+: ") as raised:
        admin.restore(snapshot, tmp_path / "new").verify()
    assert raised.value.exit_code == DAMAGED


def test_damaged_settings_come_back(orders):
    path = orders / "config" / "topics.json"
    path.write_bytes(path.read_bytes()[:-20])
    path.with_name("topics.json.bak").unlink(missing_ok=True)
    with StoreView.open(orders) as view:
        change = admin.recover_config(view, now_ms=NOW)
    assert "orders" in {row.name for row in change.plan}
    assert change.question == "Replace topics.json and subscriptionGroup.json?"
    assert change.summary[0].startswith("config/topics.json is ")
    with java_lock(orders), pytest.raises(StoreInUseError):
        list(change.apply(NOTE).rows)
    assert all(row.applied for row in change.apply(NOTE).rows)
    with StoreView.open(orders) as view:
        assert view.topics()["orders"].read_queue_nums == 2
        assert admin.recover_config(view, now_ms=NOW).plan == []
    assert noted(orders)["what"] == "subscriptionGroup.json", "g has progress and no settings"


def test_settings_that_were_written_since_the_plan_stay(orders):
    path = orders / "config" / "topics.json"
    path.unlink()
    path.with_name("topics.json.bak").unlink(missing_ok=True)
    groups = orders / "config" / "subscriptionGroup.json"
    with StoreView.open(orders) as view:
        change = admin.recover_config(view, now_ms=NOW)
    with EmbeddedBroker.open(orders) as broker:
        broker.update_topic(TopicConfig("new", 16, 16))
    written = path.read_bytes()
    for do in (change.check, lambda: list(change.apply(NOTE).rows)):
        with pytest.raises(StoreChangedError, match=r"topics\.json has changed since the plan was"):
            do()
    assert path.read_bytes() == written
    assert not groups.exists()
    assert not (orders / "rmqctl" / "quarantine").exists()


def test_a_file_that_is_written_while_another_one_is_recovered_stays(orders):
    groups = orders / "config" / "subscriptionGroup.json"
    for path in (orders / "config").glob("topics.json*"):
        path.unlink()
    with StoreView.open(orders) as view:
        change = admin.recover_config(view, now_ms=NOW)
    rows = iter(change.apply(NOTE).rows)
    assert next(rows).file == "topics.json"
    with EmbeddedBroker.open(orders) as broker:
        broker.update_group(SubscriptionGroupConfig("new"))
    written = groups.read_bytes()
    with pytest.raises(PartlyDone, match=r"topics\.json was replaced before that") as raised:
        list(rows)
    assert isinstance(raised.value.__cause__, StoreChangedError)
    assert str(raised.value.__cause__) in str(raised.value)
    assert groups.read_bytes() == written


@pytest.mark.parametrize(
    ("full", "error"),
    [("topics.json", StoreNotWritableError), ("subscriptionGroup.json", PartlyDone)],
)
def test_a_disk_that_is_full_after_one_file_was_recovered_is_said_so(
    orders, monkeypatch, full, error
):
    for path in (orders / "config").glob("topics.json*"):
        path.unlink()
    with StoreView.open(orders) as view:
        change = admin.recover_config(view, now_ms=NOW)
    save = os.pwrite

    def pwrite(fd, data, offset):
        if b'"what":"%s"' % full.encode() in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return save(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(error, match="No space left on device"):
        list(change.apply(NOTE).rows)
    monkeypatch.undo()
    with StoreView.open(orders) as view:
        assert ("orders" in view.topics()) is (error is PartlyDone)
        assert all(row.applied for row in admin.recover_config(view, now_ms=NOW).apply(NOTE).rows)


def test_a_setting_is_changed_and_comes_back(orders, ask):
    change = broker_admin.set_setting(ask(orders).view, "fileReservedTime", "24")
    (row,) = change.plan
    assert (row.setting, row.old, row.value) == ("file_reserved_time_hours", "72", "24")
    assert (change.name, change.old, change.new) == ("file_reserved_time_hours", 72, 24)
    assert read_store_settings(orders).store == {}
    assert [row.applied for row in change.apply(NOTE).rows] == [True]
    entry = noted(orders)
    assert (entry["what"], entry["old"], entry["new"]) == (change.name, 72, 24)
    settings = broker_admin.BrokerSettings(ask(orders).view)
    assert "fileReservedTime=24" in settings.java_lines()
    assert [row.value for row in settings.rows([change.name])] == ["24"]
    assert broker_admin.set_setting(ask(orders).view, "fileReservedTime", "24").plan == []
    broker_admin.set_setting(ask(orders).view, "fileReservedTime", None).apply(NOTE)
    assert read_store_settings(orders).store == {}


def test_a_setting_is_not_changed_over_another_change_or_beside_java(orders, ask):
    change = broker_admin.set_setting(ask(orders).view, "deleteWhen", "05")
    with java_lock(orders), pytest.raises(StoreInUseError):
        change.apply(NOTE)
    broker_admin.set_setting(ask(orders).view, "fileReservedTime", "24").apply(NOTE)
    for step in (change.check, lambda: change.apply(NOTE)):
        with pytest.raises(CliError, match="changed since the plan") as raised:
            step()
        assert raised.value.exit_code == CHANGED
    assert read_store_settings(orders).store == {"file_reserved_time_hours": 24}


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("fileReservedTme", "3", UsageProblem),
        ("fileReservedTime", "long", UsageProblem),
        ("maxIndexNum", "3", Refused),
    ],
)
def test_a_setting_that_cannot_be_is_an_error(asked, name, text, error):
    with pytest.raises(error):
        broker_admin.set_setting(asked.view, name, text)
