"""Offset stores: one contract for both, and what each does in its own way."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.api.offsets import OffsetCommit, OffsetQuery, ProgressPastEnd
from client.errors import BrokerNotExistError
from client.offset_store.local_offset_store import LocalFileOffsetStore
from client.offset_store.offset_store import OffsetStore, ReadOffsetType
from client.offset_store.remote_offset_store import RemoteBrokerOffsetStore
from storage.configs.topics import TopicConfig
from storage.errors import CorruptFileError, DamagedFileWarning
from storage.format.message import MessageQueue
from tests.support.failing_broker import DOWN, THEN, FailingBroker

MEMORY = ReadOffsetType.READ_FROM_MEMORY
STORE = ReadOffsetType.READ_FROM_STORE
BOTH = ReadOffsetType.MEMORY_FIRST_THEN_STORE
Q0, Q1, Q2 = (MessageQueue("T", "broker-a", n) for n in range(3))

Reopen = Callable[[], OffsetStore]


@pytest.fixture
def aged(open_broker):
    """A broker that has no progress for new groups, not even 0."""
    broker = open_broker(zero_when_young=False)
    broker.update_topic(TopicConfig("T", 3, 3))
    return broker


def remote(broker, moved=lambda _: None, group: str = "g") -> RemoteBrokerOffsetStore:
    def find(name: str):
        if name != broker.name:
            raise BrokerNotExistError(name, [broker.name])
        return broker

    return RemoteBrokerOffsetStore(group, find, moved)


@pytest.fixture(params=["remote", "local"])
def reopen(request, aged, tmp_path: Path) -> Reopen:
    def make() -> OffsetStore:
        if request.param == "remote":
            return remote(aged)
        store = LocalFileOffsetStore("127.0.0.1@DEFAULT", "g", tmp_path / "offsets")
        store.load()
        return store

    return make


# -- both


@pytest.mark.conformance("G1")
def test_nothing_is_known_before_something_was_noted(reopen: Reopen) -> None:
    store = reopen()
    assert [store.read_offset(Q0, kind) for kind in ReadOffsetType] == [None, None, None]


@pytest.mark.conformance("G1", "G2")
def test_progress_only_goes_on_unless_it_is_to_be_set(reopen: Reopen) -> None:
    store = reopen()
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(Q0, 3, increase_only=True)
    assert store.read_offset(Q0, MEMORY) == 5
    store.update_offset(Q0, 3, increase_only=False)
    assert store.read_offset(Q0, MEMORY) == 3


@pytest.mark.conformance("G1", "E23")
def test_what_is_persisted_is_there_after_a_restart(reopen: Reopen) -> None:
    store = reopen()
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(Q1, 7, increase_only=True)
    store.persist_all([Q0, Q1])
    store.update_offset(Q0, 6, increase_only=True)
    again = reopen()
    assert again.read_offset(Q0, STORE) == 5
    assert again.read_offset(Q0, MEMORY) == 5, "what was read is in memory"
    assert again.read_offset(Q1, BOTH) == 7


@pytest.mark.conformance("G1")
def test_memory_goes_first_where_it_may(reopen: Reopen) -> None:
    store = reopen()
    store.update_offset(Q0, 5, increase_only=True)
    store.persist(Q0)
    store.update_offset(Q0, 9, increase_only=True)
    assert store.read_offset(Q0, BOTH) == 9
    assert store.read_offset(Q0, STORE) == 5
    assert store.read_offset(Q0, MEMORY) == 5


@pytest.mark.conformance("G1")
def test_persisting_no_queue_does_nothing(reopen: Reopen) -> None:
    store = reopen()
    store.update_offset(Q0, 5, increase_only=True)
    store.persist_all([])
    store.persist(Q1)
    assert store.read_offset(Q0, MEMORY) == 5
    assert reopen().read_offset(Q0, STORE) is None


@pytest.mark.conformance("G1")
def test_a_removed_queue_is_forgotten_in_memory_only(reopen: Reopen) -> None:
    store = reopen()
    store.update_offset(Q0, 5, increase_only=True)
    store.persist(Q0)
    store.remove_offset(Q0)
    assert store.read_offset(Q0, MEMORY) is None
    assert store.read_offset(Q0, STORE) == 5


@pytest.mark.conformance("G1")
def test_the_table_can_be_looked_at_by_topic(reopen: Reopen) -> None:
    store = reopen()
    other = MessageQueue("U", "broker-a", 0)
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(other, 6, increase_only=True)
    table = store.clone_offset_table()
    assert table == {Q0: 5, other: 6}
    table.clear()
    assert store.clone_offset_table("T") == {Q0: 5}


# -- at the broker


@pytest.mark.conformance("G3")
def test_queues_that_are_not_ours_any_more_are_forgotten_unsent(aged) -> None:
    store = remote(aged)
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(Q1, 7, increase_only=True)
    store.persist_all({Q0})
    assert store.clone_offset_table() == {Q0: 5}
    assert aged.consumer_offsets("g") == {("g", "T"): {0: 5}}


@pytest.mark.conformance("G3", "G12")
def test_a_queue_that_is_taken_during_a_commit_keeps_its_generation(aged) -> None:
    aged.update_consumer_offsets("g", [OffsetCommit("T", 1, 5)])
    aged.progress.move("g", {("T", 1): 2})
    moves: list[object] = []
    store = remote(aged, moves.append)
    store.update_offset(Q0, 1, increase_only=True)
    assert store.read_offset(Q1, STORE) == 2  # it is being taken
    store.persist_all([Q0])  # by a list that was made before
    store.update_offset(Q1, 4, increase_only=True)
    assert store.pull_commit(Q1) == OffsetCommit("T", 1, 4, 1)
    store.persist_all([Q0, Q1])
    assert aged.query_consumer_offset("g", "T", 1).offset == 4
    assert moves == []


def test_what_is_noted_late_of_a_queue_that_was_moved_and_given_up_is_ignored(aged) -> None:
    store = remote(aged)
    assert store.read_offset(Q1, STORE) is None
    store.update_offset(Q0, 1, increase_only=True)
    store.update_offset(Q1, 5, increase_only=True)
    aged.progress.move("g", {("T", 1): 2})
    store.persist_all([Q0, Q1])
    store.persist_all([Q0])
    store.update_offset(Q1, 9, increase_only=True)
    store.persist_all([Q0, Q1])
    assert aged.query_consumer_offset("g", "T", 1).offset == 2


@pytest.mark.conformance("G2", "B12")
def test_every_entry_is_sent_each_time_in_one_request(aged) -> None:
    watched = FailingBroker(aged)
    watched.always("update_consumer_offsets", None)
    store = remote(watched)
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(Q1, 0, increase_only=True)
    store.persist_all([Q0, Q1])
    store.persist_all([Q0, Q1])
    expected = ("g", [OffsetCommit("T", 0, 5), OffsetCommit("T", 1, 0)])
    assert [arguments for _, arguments in watched.calls] == [expected, expected]


@pytest.mark.conformance("G2")
def test_a_broker_that_fails_costs_nothing_but_time(aged, caplog) -> None:
    failing = FailingBroker(aged)
    failing.plan("update_consumer_offsets", DOWN)
    store = remote(failing)
    elsewhere = MessageQueue("T", "broker-z", 0)
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(elsewhere, 1, increase_only=True)
    store.persist_all([Q0, elsewhere])
    assert "progress cannot be committed: group=g broker=broker-z" in caplog.text
    assert store.read_offset(Q0, MEMORY) == 5
    store.persist_all([Q0, elsewhere])
    assert remote(aged).read_offset(Q0, STORE) == 5


@pytest.mark.conformance("G1")
def test_a_broker_that_can_not_be_asked_raises(aged) -> None:
    failing = FailingBroker(aged)
    failing.always("query_consumer_offset", DOWN)
    with pytest.raises(type(DOWN)):
        remote(failing).read_offset(Q0, STORE)


@pytest.mark.conformance("G6")
def test_groups_are_independent(aged) -> None:
    one, other = remote(aged, group="g"), remote(aged, group="h")
    one.update_offset(Q0, 5, increase_only=True)
    other.update_offset(Q0, 9, increase_only=True)
    one.persist(Q0)
    other.persist(Q0)
    assert one.read_offset(Q0, STORE) == 5
    assert other.read_offset(Q0, STORE) == 9


def test_a_pull_carries_progress_that_is_larger_than_0(aged) -> None:
    store = remote(aged)
    assert store.pull_commit(Q0) is None
    store.update_offset(Q0, 0, increase_only=True)
    assert store.pull_commit(Q0) is None
    store.update_offset(Q0, 4, increase_only=True)
    assert store.pull_commit(Q0) == OffsetCommit("T", 0, 4)


def consumed(broker, moved=lambda _: None) -> RemoteBrokerOffsetStore:
    """A store whose consumer is at 50 of Q0."""
    store = remote(broker, moved)
    store.update_offset(Q0, 50, increase_only=True)
    store.persist(Q0)
    store.read_offset(Q0, STORE)
    return store


@pytest.mark.conformance("G2", "G12")
@pytest.mark.parametrize("target", [10, 90])
def test_progress_that_was_moved_is_taken_over_and_reported(aged, target: int) -> None:
    moves: list[object] = []
    store = consumed(aged, moves.append)
    aged.progress.move("g", {("T", 0): target})
    store.update_offset(Q0, 60, increase_only=True)
    store.persist_all([Q0])
    assert moves == [{Q0: target}]
    assert store.read_offset(Q0, MEMORY) == target
    assert aged.query_consumer_offset("g", "T", 0).offset == target


@pytest.mark.conformance("G12")
def test_what_the_old_way_still_notes_never_overwrites_a_move(aged) -> None:
    moves: list[object] = []
    store = consumed(aged, moves.append)
    aged.progress.move("g", {("T", 0): 10})
    for offset in (60, 70, 80):
        store.update_offset(Q0, offset, increase_only=True)
        store.persist_all([Q0])
    assert aged.query_consumer_offset("g", "T", 0).offset == 10
    assert moves == [{Q0: 10}], "told once"
    # The queue is dropped and taken again: from here on its progress counts.
    store.remove_offset(Q0)
    assert store.read_offset(Q0, STORE) == 10
    store.update_offset(Q0, 11, increase_only=True)
    store.persist_all([Q0])
    assert aged.query_consumer_offset("g", "T", 0).offset == 11
    assert len(moves) == 1


@pytest.mark.conformance("G12")
def test_progress_that_was_deleted_is_forgotten(aged) -> None:
    moves: list[object] = []
    store = consumed(aged, moves.append)
    aged.progress.move("g", {("T", 0): None})
    store.persist_all([Q0])
    assert moves == [{Q0: None}]
    assert store.read_offset(Q0, MEMORY) is None
    assert store.pull_commit(Q0) is None
    store.persist_all([Q0])
    assert aged.query_consumer_offset("g", "T", 0).offset is None


def test_two_queues_may_be_moved_while_a_third_goes_on(aged) -> None:
    moves: list[object] = []
    store = remote(aged, moves.append)
    for queue in (Q0, Q1, Q2):
        store.update_offset(queue, 5, increase_only=True)
    store.persist_all([Q0, Q1, Q2])
    aged.progress.move("g", {("T", 0): 1, ("T", 1): 2})
    store.update_offset(Q2, 6, increase_only=True)
    store.persist_all([Q0, Q1, Q2])
    assert moves == [{Q0: 1, Q1: 2}]
    assert aged.consumer_offsets("g") == {("g", "T"): {0: 1, 1: 2, 2: 6}}


def test_the_commit_of_a_queue_that_is_given_up_meanwhile_reports_no_move(aged, clock) -> None:
    moves: list[object] = []
    failing = FailingBroker(aged, clock)
    store = consumed(failing, moves.append)
    aged.progress.move("g", {("T", 0): 10})
    failing.plan("update_consumer_offsets", THEN(lambda: store.remove_offset(Q0)))
    store.persist_all([Q0])
    assert moves == []
    assert store.clone_offset_table() == {}


@pytest.mark.conformance("D11")
def test_a_correction_of_its_own_is_no_move(aged, clock) -> None:
    moves: list[object] = []
    failing = FailingBroker(aged, clock)
    store = consumed(failing, moves.append)
    failing.plan("correct_consumer_offset", THEN(lambda: store.persist_all([Q0])))
    store.correct_offset(Q0, ProgressPastEnd("T", 0, 0, 0, 50))
    store.update_offset(Q0, 3, increase_only=False)
    store.persist_all([Q0])
    assert moves == []
    assert aged.query_consumer_offset("g", "T", 0) == OffsetQuery(3, 1)


@pytest.mark.conformance("G12", "D11")
@pytest.mark.parametrize("target", [10, 90, None])
def test_a_move_before_or_beside_a_correction_is_reported(aged, clock, target) -> None:
    moves: list[object] = []
    failing = FailingBroker(aged, clock)
    store = consumed(failing, moves.append)
    aged.progress.move("g", {("T", 0): target})
    failing.plan("correct_consumer_offset", THEN(lambda: store.persist_all([Q0])))
    store.correct_offset(Q0, ProgressPastEnd("T", 0, 0, 0, 50))
    store.update_offset(Q0, 3, increase_only=False)
    store.persist_all([Q0])
    assert moves == [{Q0: target}]
    assert aged.query_consumer_offset("g", "T", 0).offset == target


def test_a_correction_that_fails_leaves_moves_to_be_reported(aged, clock) -> None:
    moves: list[object] = []
    failing = FailingBroker(aged, clock)
    store = consumed(failing, moves.append)
    failing.plan("correct_consumer_offset", DOWN)
    with pytest.raises(type(DOWN)):
        store.correct_offset(Q0, ProgressPastEnd("T", 0, 0, 0, 50))
    aged.progress.move("g", {("T", 0): 10})
    store.persist_all([Q0])
    assert moves == [{Q0: 10}]


# -- in a file


def local(folder: Path, client_id: str = "127.0.0.1@DEFAULT") -> LocalFileOffsetStore:
    return LocalFileOffsetStore(client_id, "g", folder)


@pytest.mark.conformance("G4")
def test_the_file_has_one_entry_a_queue_in_plain_json(tmp_path: Path) -> None:
    store = local(tmp_path)
    store.update_offset(Q1, 7, increase_only=True)
    store.update_offset(Q0, 5, increase_only=True)
    store.persist_all([Q0, Q1])
    assert store.path == tmp_path / "127.0.0.1@DEFAULT" / "g" / "offsets.json"
    assert json.loads(store.path.read_text()) == {
        "offsetTable": [
            {"topic": "T", "brokerName": "broker-a", "queueId": 0, "offset": 5},
            {"topic": "T", "brokerName": "broker-a", "queueId": 1, "offset": 7},
        ]
    }
    assert store.pull_commit(Q0) is None


@pytest.mark.conformance("G4")
def test_queues_that_are_not_persisted_now_keep_what_the_file_says(tmp_path: Path) -> None:
    store = local(tmp_path)
    store.update_offset(Q0, 5, increase_only=True)
    store.update_offset(Q1, 7, increase_only=True)
    store.persist_all([Q0, Q1])
    other = local(tmp_path)
    other.update_offset(Q0, 6, increase_only=True)
    other.update_offset(Q1, 1, increase_only=True)
    other.persist_all([Q0])
    again = local(tmp_path)
    again.load()
    assert again.clone_offset_table() == {Q0: 6, Q1: 7}


PERSISTS = """
import sys
from pathlib import Path
from storage.format.message import MessageQueue
from tests.client.offset_store.test_offset_store import local, many_queues

store = local(Path(sys.argv[1]))
for round in range(150):
    for queue in many_queues(int(sys.argv[2])):
        store.update_offset(queue, round, increase_only=True)
    store.persist_all(many_queues(int(sys.argv[2])))
    local(Path(sys.argv[1])).load()
"""


def many_queues(writer: int) -> list[MessageQueue]:
    """Queues of a writer's own: the more, the longer is what it writes."""
    return [MessageQueue(f"T{writer}", "broker-a", number) for number in range(1 + 7 * writer)]


@pytest.mark.slow
@pytest.mark.conformance("G4")
def test_two_who_persist_at_once_lose_nothing_of_each_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Two threads of a consumer did so at its end; a file was cut in the middle once."""
    processes = [
        subprocess.Popen([sys.executable, "-c", PERSISTS, tmp_path, str(writer)])
        for writer in range(2)
    ]
    store = local(tmp_path)
    queues = many_queues(2)

    def work(mine: list[MessageQueue]) -> None:
        for offset in range(150):
            for queue in mine:
                store.update_offset(queue, offset, increase_only=True)
            store.persist_all(mine)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in (queues[:1], queues[1:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        assert process.wait(60) == 0
    found = local(tmp_path)
    found.load()
    every = [queue for writer in range(3) for queue in many_queues(writer)]
    assert found.clone_offset_table() == dict.fromkeys(every, 149)
    assert caplog.records == []


@pytest.mark.conformance("G4")
@pytest.mark.parametrize("damage", ["", "{", '{"offsetTable": [{}]}', '{"offsetTable": 5}', "[]"])
def test_a_damaged_file_is_replaced_by_its_bak(tmp_path: Path, damage: str) -> None:
    store = local(tmp_path)
    for offset in (5, 6):
        store.update_offset(Q0, offset, increase_only=True)
        store.persist(Q0)
    store.path.write_text(damage)
    again = local(tmp_path)
    with pytest.warns(DamagedFileWarning, match=r"its \.bak is taken, which may be older"):
        again.load()
    assert again.read_offset(Q0, MEMORY) == 5
    store.path.unlink()
    assert again.read_offset(Q0, STORE) == 5


@pytest.mark.conformance("G4")
def test_a_damaged_file_with_a_damaged_bak_is_an_error(tmp_path: Path) -> None:
    store = local(tmp_path)
    for offset in (5, 6):
        store.update_offset(Q0, offset, increase_only=True)
        store.persist(Q0)
    store.path.write_text("{")
    store.path.with_name("offsets.json.bak").write_text("{")
    with pytest.raises(CorruptFileError):
        local(tmp_path).load()


@pytest.mark.conformance("G4")
def test_another_client_id_or_group_has_progress_of_its_own(tmp_path: Path) -> None:
    store = local(tmp_path)
    store.update_offset(Q0, 5, increase_only=True)
    store.persist(Q0)
    assert local(tmp_path, "10.0.0.1@DEFAULT").read_offset(Q0, STORE) is None
    assert LocalFileOffsetStore("127.0.0.1@DEFAULT", "h", tmp_path).read_offset(Q0, STORE) is None


@pytest.mark.parametrize("client_id", ["../../etc", "..", ".", "a/b", "a%2Fb"])
def test_no_client_id_leaves_the_folder(tmp_path: Path, client_id: str) -> None:
    store = local(tmp_path / "base", client_id)
    store.update_offset(Q0, 5, increase_only=True)
    store.persist(Q0)
    assert store.path.resolve().is_relative_to(tmp_path / "base")
    assert len(store.path.relative_to(tmp_path / "base").parts) == 3
    assert local(tmp_path / "base", client_id).read_offset(Q0, STORE) == 5


def test_a_file_that_can_not_be_written_is_logged(tmp_path: Path, caplog) -> None:
    (tmp_path / "base").write_text("a file where the folder should be")
    store = local(tmp_path / "base")
    store.update_offset(Q0, 5, increase_only=True)
    store.persist(Q0)
    assert "progress cannot be written" in caplog.text
    assert store.read_offset(Q0, MEMORY) == 5


GOOD = {"topic": "T", "brokerName": "broker-a", "queueId": 0, "offset": 5}


@pytest.mark.parametrize(
    "wrong",
    [
        {"queueId": "0"},
        {"queueId": -1},
        {"queueId": 1 << 31},
        {"queueId": True},
        {"topic": 5},
        {"topic": None},
        {"brokerName": ["broker-a"]},
        {"offset": 1e300},
        {"offset": 5.0},
        {"offset": "5"},
        {"offset": -5},
        {"offset": 1 << 63},
    ],
    ids=str,
)
def test_an_entry_of_another_type_is_damage_for_which_the_bak_stands(tmp_path: Path, wrong) -> None:
    store = local(tmp_path)
    for offset in (5, 6):
        store.update_offset(Q0, offset, increase_only=True)
        store.persist_all([Q0])
    store.path.write_text(json.dumps({"offsetTable": [{**GOOD, **wrong}]}))
    again = local(tmp_path)
    with pytest.warns(DamagedFileWarning, match=r"offsets\.json is damaged.*its \.bak is taken"):
        again.load()
    assert again.read_offset(Q0, MEMORY) == 5
    again.update_offset(Q0, 9, increase_only=True)
    again.persist_all([Q0])
    assert json.loads(store.path.read_text()) == {"offsetTable": [{**GOOD, "offset": 9}]}


@pytest.mark.parametrize("document", ["[]", '{"offsetTable":5}', '{"offsetTable":[5]}'])
def test_a_table_of_another_form_without_a_bak_is_refused(tmp_path: Path, document: str) -> None:
    store = local(tmp_path)
    store.path.parent.mkdir(parents=True)
    store.path.write_text(document)
    with pytest.raises(CorruptFileError):
        store.load()


@pytest.mark.parametrize("offset", [-1, 1 << 63])
def test_an_offset_that_no_reader_takes_is_not_written(tmp_path: Path, offset: int) -> None:
    store = local(tmp_path)
    store.update_offset(Q0, offset, increase_only=False)
    store.update_offset(Q1, 7, increase_only=False)
    store.persist_all([Q0, Q1])
    again = local(tmp_path)
    again.load()
    assert (again.read_offset(Q0, MEMORY), again.read_offset(Q1, MEMORY)) == (None, 7)
