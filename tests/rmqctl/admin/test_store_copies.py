"""Snapshots are taken and verified, and stores are compared, through the library."""

import re
import sys
import tarfile

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import store as admin
from rmqctl.errors import CliError, NotFound, Refused
from rmqctl.exit_codes import DAMAGED, NOT_WRITABLE
from storage.errors import NoSnapshotError, StoreError
from storage.files.checksum import no_tick
from storage.format.message import Message
from storage.readonly import StoreView
from storage.tools.snapshot.manifest import is_snapshot
from storage.tools.snapshot.snapshot import take_snapshot as take_snapshot_of_files
from tests.support.cli import run

NOW = 1_767_225_600_000


def compared(a, b, **options):
    with StoreView.open(a) as first, StoreView.open(b) as second:
        return [
            (row.part, row.name, row.queue_id, row.field, row.a, row.b)
            for row in admin.diff(first, second, **options)
        ]


def test_a_snapshot_is_taken_beside_a_writer_and_verified(orders, tmp_path):
    target = tmp_path / "monday"
    labels: list[str] = []

    def phase(label, total):
        labels.append(label)
        return lambda count: None

    with EmbeddedBroker.open(orders) as broker:
        broker.send(Message("orders", b"last"), 0)
        row = admin.take_snapshot(orders, target, now_ms=NOW, phase=phase)
        broker.send(Message("orders", b"later"), 0)
    assert (row.path, row.source, row.at_timestamp) == (str(target), str(orders), NOW)
    assert (row.messages, row.whole) == (16, True)
    assert labels
    verified = admin.verify_snapshot(target, phase=phase)
    assert labels[-1] == "verifying"
    assert verified == row._replace(shared_files=None)


def test_copies_share_nothing_and_a_file_is_an_archive(orders, tmp_path):
    row = admin.take_snapshot(orders, tmp_path / "copy", copies_only=True)
    assert row.shared_files == 0
    admin.take_snapshot(orders, tmp_path / "copy.tar.gz")
    with tarfile.open(tmp_path / "copy.tar.gz") as archive:
        assert any(name.endswith("topics.json") for name in archive.getnames())
    assert admin.verify_snapshot(tmp_path / "copy.tar.gz").messages == row.messages


def test_a_target_is_judged_before_a_snapshot_is_taken(orders, tmp_path):
    admin.check_target(orders, tmp_path / "new")
    with pytest.raises(Refused, match="inside the store"):
        admin.check_target(orders, orders / "copy")
    with pytest.raises(NotFound):
        admin.check_target(tmp_path / "nowhere", tmp_path / "new")
    (tmp_path / "file").write_text("kept")
    with pytest.raises(CliError):
        admin.check_target(orders, tmp_path / "file")


def test_a_file_that_needs_a_missing_package_is_refused_before_anything_is_copied(
    orders, tmp_path, monkeypatch
):
    target = tmp_path / "copy.tar.zst"
    admin.check_target(orders, target)
    admin.take_snapshot(orders, tmp_path / "whole.tar.zst")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    begun = []

    def phase(label, total):
        begun.append(label)
        return no_tick

    why = "install the Python package zstandard, or name a file *.tar.gz"
    for take in (admin.take_snapshot, take_snapshot_of_files):
        with pytest.raises((CliError, StoreError), match=re.escape(why)):
            take(orders, target, now_ms=1, phase=phase)
    with pytest.raises(CliError, match=re.escape(why)):
        admin.check_target(orders, target)
    assert begun == []
    dry = run("store", "snapshot", "-S", orders, "--save", target, "-n")
    assert dry.code == 1
    assert why in dry.err
    with pytest.raises(StoreError, match="install the Python package zstandard, or unpack it"):
        admin.verify_snapshot(tmp_path / "whole.tar.zst")


def test_a_snapshot_that_is_stopped_leaves_nothing(orders, tmp_path):
    class Stop(Exception):
        """The work is stopped."""

    def phase(label, total):
        raise Stop

    before = set(tmp_path.iterdir())
    with pytest.raises(Stop):
        admin.take_snapshot(orders, tmp_path / "copy", copies_only=True, phase=phase)
    assert set(tmp_path.iterdir()) == before


def test_a_target_that_cannot_be_is_an_error(orders, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    for target, error in {"mine": Refused, "mine/letter": Refused, "no/snap": CliError}.items():
        with pytest.raises(error):
            admin.take_snapshot(orders, tmp_path / target)
    with pytest.raises(Refused, match="is inside the store"):
        admin.take_snapshot(orders, orders / "snap")
    with pytest.raises(NotFound):
        admin.take_snapshot(tmp_path / "none", tmp_path / "snap")
    with pytest.raises(CliError, match="is not a folder; create it first") as raised:
        admin.take_snapshot(orders, tmp_path / "no" / "snap")
    assert raised.value.exit_code == NOT_WRITABLE


def test_damage_and_what_is_no_snapshot_are_found(orders, tmp_path):
    target = tmp_path / "snap"
    admin.take_snapshot(orders, target, copies_only=True)
    assert is_snapshot(target)
    path = next((target / "commitlog").iterdir())
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(60)
        file.write(b"XXXX")
    with pytest.raises(CliError, match="is damaged") as raised:
        admin.verify_snapshot(target)
    assert raised.value.exit_code == DAMAGED
    with pytest.raises(NoSnapshotError):
        admin.verify_snapshot(orders)


def test_a_store_and_its_snapshot_differ_by_what_was_done_since(orders, tmp_path):
    old = tmp_path / "old"
    admin.take_snapshot(orders, old, copies_only=True)
    assert compared(old, orders, deep=True) == []
    with EmbeddedBroker.open(orders) as broker:
        broker.send(Message("orders", b"new"), 1)
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 7)])
    found = compared(old, orders)
    assert ("queue", "orders", 1, "max_offset", 5, 6) in found
    assert ("offset", "orders@g", 0, "committed_offset", 5, 7) in found
    assert compared(old, orders, topics=["other"]) == []


def test_messages_that_differ_are_found_and_counted(orders, tmp_path):
    old = tmp_path / "old"
    admin.take_snapshot(orders, old, copies_only=True)
    with StoreView.open(orders) as view:
        message = view.get_message("orders", 0, 3, 1).messages[0]
    path = next((old / "commitlog").iterdir())
    path.chmod(0o600)
    with path.open("r+b") as file:
        data = path.read_bytes()
        at = data.index(message.body, message.commitlog_offset)
        file.seek(at)
        file.write(message.body.upper())
    counts: list[int] = []
    with StoreView.open(old) as a, StoreView.open(orders) as b:
        assert list(admin.diff(a, b)) == []
        [row] = admin.diff(a, b, deep=True, tick=counts.append)
    assert (row.part, row.queue_id, row.queue_offset, row.field) == ("message", 0, 3, "content")
    assert row.note == "the first of 1 that differ, of 10 that both have"
    assert sum(counts) == 15
