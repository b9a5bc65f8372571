"""Queues, index and progress of groups are made anew through the library."""

import os

import pytest

from broker.api.members import (
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from broker.api.offsets import ConsumeFromWhere, OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from broker.errors import OffsetChangedError
from rmqctl.admin import store as admin
from rmqctl.admin.changes import Change, journal_note
from rmqctl.errors import NotFound, Refused
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.errors import StoreInUseError
from storage.format.names import CONSUMEQUEUE, INDEX
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support import golden
from tests.support.java_lock import java_lock

NOTE = journal_note("test", reason="to see")
CONSUMER = ConsumerData(
    "g",
    ConsumeType.CONSUME_PASSIVELY,
    MessageModel.CLUSTERING,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    (SubscriptionData("orders"),),
)


def noted(root):
    """The last entry of the journal."""
    *_, entry = Journal(root).entries()
    assert {name: entry[name] for name in NOTE} == NOTE
    return entry


def files(root, part="."):
    folder = root / part
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


class Client:
    """A client without consumers of its own."""

    def notify_consumer_ids_changed(self, group):
        """Take the notice."""


# -- queues and index ---------------------------------------------------------------------------


@pytest.fixture
def hole(tmp_path):
    """A real broker's store with a hole in a queue."""
    return golden.extract("hole-4.9", tmp_path)


def queues_of(root, **options):
    with StoreView.open(root) as view:
        return admin.rebuild_queues(view, **options)


def index_of(root, **options):
    with StoreView.open(root) as view:
        return admin.rebuild_index(view, **options)


@pytest.mark.slow
def test_a_queue_becomes_what_the_broker_wrote(hole):
    before = files(hole)
    labels: list[str] = []

    def phase(label, total):
        labels.append(label)
        return lambda count: None

    change = queues_of(hole, phase=phase)
    assert issubclass(type(change), Change)
    (row,) = change.plan
    assert (row.topic, row.queue_id, row.changed, row.applied) == ("GoldenTiny", 0, 40, None)
    assert change.summary[0] == "8 queues match the log and stay as they are"
    assert change.question == f"Replace 1 queues of {hole}?"
    change.check()
    assert files(hole) == before
    assert [row.applied for row in change.apply(NOTE).rows] == [True]
    assert files(hole, CONSUMEQUEUE) == files(golden.store("small-files-4.9"), CONSUMEQUEUE)
    assert labels == ["comparing the queues with the log", "rebuilding the queues"]
    entry = noted(hole)
    assert (entry["topic"], entry["what"], entry["new"]["units"]) == ("GoldenTiny", "queues", 280)
    assert change.old_files is None, "the file was missing"
    assert queues_of(hole).plan == []


@pytest.mark.slow
def test_replaced_files_are_kept(hole):
    path = next((hole / CONSUMEQUEUE / "GoldenSmall" / "0").iterdir())
    whole = path.read_bytes()
    path.write_bytes(bytes(20) + whole[20:])
    change = queues_of(hole, topic="GoldenSmall")
    assert f"old files are moved to {hole}/rmqctl/quarantine/" in change.summary
    assert [row.changed for row in change.plan] == [1]
    list(change.apply(NOTE).rows)
    assert path.read_bytes() == whole
    run_folder = noted(hole)["new"]["quarantine"]
    assert change.old_files == hole / "rmqctl" / "quarantine" / run_folder
    assert any(path.name == kept.name for kept in change.old_files.rglob("*"))


@pytest.mark.slow
def test_queues_are_chosen(hole):
    assert queues_of(hole, topic="GoldenSmall").plan == []
    assert len(queues_of(hole, topic="GoldenTiny", queue_ids=[0]).plan) == 1
    with pytest.raises(NotFound, match="has neither queues nor messages"):
        queues_of(hole, topic="none")
    with pytest.raises(NotFound, match="has no queue 9"):
        queues_of(hole, topic="GoldenTiny", queue_ids=[9])


@pytest.mark.slow
def test_a_lost_index_comes_back(hole):
    for path in (hole / INDEX).iterdir():
        path.unlink()
    change = index_of(hole)
    assert {row.part for row in change.plan} == {"index"}
    assert {row.applied for row in change.apply(NOTE).rows} == {True}
    assert list((hole / INDEX).iterdir())
    assert noted(hole)["what"] == "index files"
    assert index_of(hole).plan == []


@pytest.mark.slow
def test_nothing_is_rebuilt_beside_other_writers(hole):
    change = queues_of(hole)
    before = files(hole, CONSUMEQUEUE)
    (hole / "lock").touch()
    with java_lock(hole):
        for step in (change.check, lambda: change.apply(NOTE)):
            with pytest.raises(StoreInUseError):
                step()
    assert files(hole, CONSUMEQUEUE) == before
    with MessageStore.open(hole), pytest.raises(Refused, match=f"process {os.getpid()} has"):
        change.check()


def test_a_store_without_an_index_has_none_to_rebuild(tmp_path):
    from storage.config import SMALL_STORE

    MessageStore.create(tmp_path / "s", SMALL_STORE.with_(message_index_enable=False))
    with pytest.raises(Refused, match="messageIndexEnable is false"):
        index_of(tmp_path / "s")


# -- progress -----------------------------------------------------------------------------------

JAVA = "config/consumerOffset.json"


def lose(root, *names):
    for name in names:
        (root / name).write_bytes(b"")
    (root / f"{JAVA}.bak").unlink(missing_ok=True)


def without_end_of_table(log: bytes) -> bytes:
    table, end, rest = log.partition(b"\n")
    return table[:-10] + end + rest


def recovery(root, **options):
    with StoreView.open(root) as view:
        return admin.recover_offsets(view, **options)


@pytest.fixture
def moved(orders):
    """Group g was moved to offset 3 of queue 0, which the journal has; its files are empty."""
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 7)])
    path = ProgressFile(orders).path
    whole = path.read_bytes()
    lose(orders, JAVA)
    path.write_bytes(without_end_of_table(whole))
    return orders


@pytest.mark.slow
def test_lost_progress_is_written_and_can_be_undone(moved, offsets_of):
    before = files(moved)
    change = recovery(moved)
    assert issubclass(type(change), Change)
    known = {row.queue_id: row.new_offset for row in change.plan if row.group == "g"}
    assert known[0] == 7
    assert change.question == "Write the progress of 1 group in 1 queue?"
    assert any("rmqctl/offsets.log is damaged" in sentence for sentence in change.damage)
    assert (change.effect_on_file, change.gives_up, change.has_effect) == ("", False, True)
    change.check()
    assert files(moved) == before
    outcome = change.apply(NOTE)
    assert [row.applied for row in outcome.rows if row.queue_id == 0] == [True]
    assert outcome.change_id == noted(moved)["change_id"]
    assert offsets_of()[0] == 7
    again = recovery(moved)
    assert (again.plan, again.has_effect, again.damage) == ([], False, ())
    assert list(again.apply(NOTE).rows) == []


@pytest.mark.slow
def test_progress_that_was_written_since_the_plan_stays(moved, offsets_of):
    change = recovery(moved, overwrite=True)
    with java_lock(moved), pytest.raises(StoreInUseError):
        change.apply(NOTE)
    list(recovery(moved).apply(NOTE).rows)
    for step in (change.check, lambda: change.apply(NOTE)):
        with pytest.raises(OffsetChangedError, match="has other progress than the plan saw"):
            step()
    assert offsets_of()[0] == 7


def test_running_consumers_forbid_it_if_that_is_asked(orders):
    with EmbeddedBroker.open(orders) as broker:
        broker.connect("one", Client())  # type: ignore[arg-type]  # no other call comes
        broker.heartbeat(HeartbeatData("one", consumers=(CONSUMER,)))
        lose(orders, JAVA)
        path = ProgressFile(orders).path
        whole = path.read_bytes()
        path.write_bytes(without_end_of_table(whole))
        change = recovery(orders)
        assert change.refusals == ()
        assert any("group g runs (one)" in sentence for sentence in change.summary)
        refused = recovery(orders, no_live=True)
        with pytest.raises(Refused, match="group g has running consumers"):
            refused.apply(NOTE)
        path.write_bytes(whole)


def test_a_consumer_that_starts_after_the_plan_forbids_it_if_that_is_asked(orders):
    java = (orders / JAVA).read_bytes()
    with EmbeddedBroker.open(orders) as broker:
        lose(orders, JAVA)
        path = ProgressFile(orders).path
        whole = path.read_bytes()
        path.write_bytes(without_end_of_table(whole))
        change = recovery(orders, no_live=True)
        change.check()
        broker.connect("one", Client())  # type: ignore[arg-type]  # no other call comes
        broker.heartbeat(HeartbeatData("one", consumers=(CONSUMER,)))
        for step in (change.check, lambda: change.apply(NOTE)):
            with pytest.raises(Refused, match="group g has running consumers"):
                step()
        path.write_bytes(whole)
        (orders / JAVA).write_bytes(java)


def test_javas_file_is_written_from_ours(orders):
    lose(orders, JAVA)
    change = recovery(orders)
    assert (change.plan, change.has_effect, change.gives_up) == ([], True, False)
    assert change.question == "Write consumerOffset.json from rmqctl/offsets.log?"
    assert list(change.apply(NOTE).rows) == []
    assert b"orders@g" in (orders / JAVA).read_bytes()
    assert not recovery(orders).has_effect


def test_without_any_evidence_the_file_is_put_away(store):
    with EmbeddedBroker.open(store):
        pass
    path = ProgressFile(store).path
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    change = recovery(store)
    assert (change.plan, change.gives_up) == ([], True)
    assert change.question.startswith("Put rmqctl/offsets.log into the quarantine")
    list(change.apply(NOTE).rows)
    assert not path.exists()
    entry = noted(store)
    assert (entry["what"], entry["old"], entry["new"]) == ("rmqctl/offsets.log", "damaged", None)
    assert list((store / "rmqctl" / "quarantine").rglob("offsets.log"))
