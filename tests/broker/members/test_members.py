"""Members of a group: clients of any processes, for as long as they live."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from broker.api.members import ConsumeDirectlyStatus, MessageModel
from broker.api.pull import PullRequest
from broker.api.transactions import CheckTransactionState
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.errors import (
    BrokerSystemError,
    ClientIdInUseError,
    InvalidNameError,
    NoPermissionError,
)
from broker.members.living import members_by_group
from broker.members.manager import JOINS_LOCK
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.coordination.locks import ProcessLock
from storage.coordination.processes import ProcessEntries, ProcessEntry
from storage.errors import WriteLockTimeoutError
from storage.format.message import Message, MessageQueue, retry_topic
from tests.support.broker_puppet import broker_puppet
from tests.support.consumers import eventually
from tests.support.recording_client import RecordingClient, consumer, heartbeat, subscription

BROADCASTING = MessageModel.BROADCASTING


def join(broker: EmbeddedBroker, client_id: str, *consumers: Any) -> RecordingClient:
    client = RecordingClient()
    broker.connect(client_id, client)
    broker.heartbeat(heartbeat(client_id, *consumers or [consumer("g", "T")]))
    return client


@pytest.mark.conformance("B14")
def test_all_processes_see_the_members_and_what_they_want(broker, open_broker):
    other = open_broker()
    join(broker, "b", consumer("g", subscription("T", "A||B", 7), retry_topic("g")))
    join(other, "a", consumer("g", subscription("T", "A||B", 7), retry_topic("g")))
    join(other, "c", consumer("h", "U", model=BROADCASTING))
    for each in (broker, other, open_broker(read_only=True)):
        assert each.consumer_ids("g") == ["a", "b"]
        assert each.consumer_ids("nobody") == []
        first = each.consumer_connection("g")[0]
        assert first.consumer == consumer("g", subscription("T", "A||B", 7), retry_topic("g"))
        assert (first.client_id, first.last_heartbeat >= first.since > 0) == ("a", True)
        assert each.consumer_connection("h")[0].consumer.message_model is BROADCASTING


@pytest.mark.parametrize(
    "said",
    [
        {"model": "SHARED"},
        {"where": "CONSUME_FROM_THE_MOON"},
        {"type": None},
        {"subscriptions": [["T"]]},
        {"subscriptions": 3},
        [],
    ],
    ids=str,
)
def test_a_member_that_says_what_is_not_known_here_counts_and_breaks_nothing(
    broker, open_broker, caplog, said
):
    other = open_broker()
    join(broker, "a", consumer("g", subscription("T", "A", 7)))
    join(other, f"newer {said}", consumer("g", "T", "U"))
    notices = other.members.notices
    path = notices.processes.path(notices.name, ".json")
    content = json.loads(path.read_bytes())
    newer = content["clients"][0]["consumers"]
    newer["g"] = {**newer["g"], **said} if said else said
    content["clients"][0]["beat"] = time.monotonic_ns()
    content["clients"] += [{"id": "z"}, "y"]
    path.write_text(json.dumps(content))
    for each in (broker, open_broker(read_only=True)):
        assert each.consumer_ids("g") == ["a", f"newer {said}"]
        readable, unreadable = each.consumer_connection("g")
        assert readable.consumer == consumer("g", subscription("T", "A", 7))
        assert unreadable.consumer is None
    told = [it for it in caplog.messages if it.startswith("what a member wants cannot be read")]
    assert len([it for it in told if f"group=g client_id=newer {said} " in it]) == 1
    assert len([it for it in told if it.endswith(": a part is missing")]) == 1
    # The group follows its readable members, whichever sent the last heartbeat.
    broker.send(Message("T", b"x", tags="A"), 0)
    assert len(broker.pull(PullRequest("g", "T", 0, 0)).messages) == 1
    join(broker, "b", consumer("g", subscription("T", "A", 7)))
    assert len(broker.consumer_ids("g")) == 3


@pytest.mark.conformance("B14")
def test_ids_are_sorted_as_java_sorts_them(broker):
    for client_id in ("\U0001f600", "\uff5e", "b", "B"):
        join(broker, client_id)
    assert broker.consumer_ids("g") == ["B", "b", "\U0001f600", "\uff5e"]


def test_a_group_whose_retry_topic_may_not_be_is_refused_before_anything_is_made(broker):
    longest, group = "g" * 120, "g" * 121
    with pytest.raises(InvalidNameError, match="group 'g{40}...' has 121 characters, .* 120 "):
        join(broker, "a", consumer(group, "T"))
    assert group not in broker.groups()
    broker.heartbeat(heartbeat("a", consumer(longest, "T")))
    assert broker.topic(retry_topic(longest)) is not None


@pytest.mark.conformance("H1")
def test_joining_makes_the_group_and_its_retry_topic(broker):
    broker.update_group(SubscriptionGroupConfig("h", retry_queue_nums=3))
    join(broker, "a", consumer("g", "T"), consumer("h", "T"))
    assert broker.groups()["g"] == SubscriptionGroupConfig("g")
    made = {group: broker.topic(retry_topic(group)) for group in "gh"}
    assert [(t.read_queue_nums, t.write_queue_nums, t.perm) for t in made.values()] == [
        (1, 1, 6),
        (3, 3, 6),
    ]


@pytest.mark.conformance("C6", "B11")
def test_all_members_are_notified_when_a_member_comes_or_goes(broker, open_broker):
    other = open_broker()
    here = join(broker, "a")
    assert here.wait_for("changed", "g")
    there = join(other, "b")
    assert here.wait_for("changed", "g", times=2)
    assert there.wait_for("changed", "g")
    other.heartbeat(heartbeat("b", consumer("g", "T")))  # nothing new
    other.disconnect("b")
    assert here.wait_for("changed", "g", times=3)
    broker.unregister_client("a", consumer_group="g")
    join(broker, "c")
    assert broker.consumer_ids("g") == ["c"]
    assert here.calls == [("changed", "g")] * 3
    assert there.calls == [("changed", "g")]


@pytest.mark.conformance("B14")
def test_another_topic_is_told_and_another_expression_is_not(broker):
    client = join(broker, "a", consumer("g", subscription("T", "A", 1)))
    broker.heartbeat(heartbeat("a", consumer("g", subscription("T", "B", 2))))
    assert broker.members.group_table("g").subscriptions["T"].sub_string == "B"
    broker.heartbeat(heartbeat("a", consumer("g", subscription("T", "B", 2), "U")))
    assert client.wait_for("changed", "g", times=2)
    broker.heartbeat(heartbeat("a", consumer("g", subscription("T", "B", 2))))
    assert client.wait_for("changed", "g", times=3)
    assert list(broker.members.group_table("g").subscriptions) == ["T"]
    assert len(client.calls) == 3


@pytest.mark.conformance("B14")
def test_members_that_want_different_topics_knock_each_other_out(broker, open_broker):
    other = open_broker()
    join(broker, "a", consumer("g", "T"))
    join(other, "b", consumer("g", "U"))
    assert list(other.members.group_table("g").subscriptions) == ["U"]
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    assert list(broker.members.group_table("g").subscriptions) == ["T"]


@pytest.mark.conformance("B14")
def test_the_newest_subscription_of_a_topic_holds_although_a_member_repeats_an_older_one(
    broker, open_broker
):
    other = open_broker()
    join(broker, "a", consumer("g", subscription("T", "NEW", 2)))
    join(other, "b", consumer("g", subscription("T", "OLD", 1)))
    for each in (broker, other):
        assert each.members.group_table("g").subscriptions["T"].sub_string == "NEW"


@pytest.mark.conformance("C6")
def test_a_group_that_is_not_told_of_its_members_is_not(broker):
    broker.update_group(SubscriptionGroupConfig("g", notify_consumer_ids_changed_enable=False))
    quiet = join(broker, "a")
    loud = join(broker, "b", consumer("h", "T"))
    assert loud.wait_for("changed", "h")
    broker.disconnect("b")
    join(broker, "c", consumer("g", "T"), consumer("i", "T")).wait_for("changed", "i")
    assert quiet.calls == []


@pytest.mark.crash
@pytest.mark.conformance("C6", "A19", "B14")
def test_a_killed_process_is_out_of_its_groups_at_once_and_the_rest_are_told(broker):
    root = broker.view.root
    with broker_puppet(root) as one, broker_puppet(root) as two:
        here = join(broker, "a")
        one.call("join", client_id="b", group="g")
        two.call("join", client_id="c", group="g")
        two.call("join", client_id="d", group="h")
        assert broker.consumer_ids("g") == ["a", "b", "c"]
        assert here.wait_for("changed", "g", times=3)
        one.kill()
        assert here.wait_for("changed", "g", times=4)
        assert broker.consumer_ids("g") == ["a", "c"]
        assert two.call("was_called", client_id="c", call=["changed", "g"], times=2)
        two.kill()
        assert here.wait_for("changed", "g", times=5)
        assert broker.consumer_ids("g") == ["a"]
    broker.members.notices.look_around()  # waits for the thread that made us tidy up
    leavings = {path.name.split(".")[0] for path in (root / "rmqctl" / "members").iterdir()}
    assert leavings <= {broker.members.notices.name, "g", "h"}


@pytest.mark.crash
def test_the_deaths_of_several_at_once_are_all_noticed(broker):
    root = broker.view.root
    here = join(broker, "a")
    puppets = [broker_puppet(root) for _ in range(4)]
    for number, puppet in enumerate(puppets):
        puppet.call("join", client_id=f"p{number}", group=f"g{number}")
    groups = [consumer(f"g{number}", "T") for number in range(4)]
    broker.heartbeat(heartbeat("a", *groups))
    for puppet in puppets[:3]:
        puppet.kill()
    for number in range(3):
        assert here.wait_for("changed", f"g{number}", times=2)
        assert broker.consumer_ids(f"g{number}") == ["a"]
    assert broker.consumer_ids("g3") == ["a", "p3"]
    for puppet in puppets:
        puppet.__exit__(None, None, None)


@pytest.mark.conformance("B14")
def test_a_client_that_is_no_process_here_is_gone_after_two_silent_minutes(open_broker):
    now = [1_000]
    broker = open_broker(clock=lambda: now[0])
    here = join(broker, "a")
    broker.members.connect("far", RecordingClient(), remote=True)
    broker.heartbeat(heartbeat("far", consumer("g", "T")))
    now[0] += 120_000
    broker.members.scan_not_active_channel()
    assert broker.consumer_ids("g") == ["a", "far"]
    now[0] += 1
    broker.members.scan_not_active_channel()
    assert broker.consumer_ids("g") == ["a"]
    assert here.wait_for("changed", "g", times=3)


@pytest.mark.conformance("B6")
@pytest.mark.slow
def test_two_processes_may_not_divide_a_group_under_one_id(broker):
    with broker_puppet(broker.view.root) as other:
        other.call("join", client_id="a", group="g")
        broker.connect("a", RecordingClient())
        with pytest.raises(BrokerSystemError, match=f"process {other.pid} on .* instance name"):
            broker.heartbeat(heartbeat("a", consumer("g", "T"), consumer("free", "T")))
        assert broker.consumer_ids("free") == ["a"]
        broker.heartbeat(heartbeat("a", consumer("g", "T", model=BROADCASTING)))
        assert broker.consumer_ids("g") == ["a", "a"]


@pytest.mark.conformance("B6")
def test_of_two_processes_that_join_under_one_id_at_the_same_time_one_is_refused(open_broker):
    first, second = open_broker(), open_broker()
    for each in (first, second):
        each.connect("a", RecordingClient())
        each.update_group(SubscriptionGroupConfig("g"))
    path = first.view.root / "rmqctl" / JOINS_LOCK
    second.members._joins = ProcessLock(path, limit_s=0.0)
    say = first.members.notices.say
    waited = []

    def join_meanwhile(clients):
        with pytest.raises(WriteLockTimeoutError, match=JOINS_LOCK) as caught:
            second.heartbeat(heartbeat("a", consumer("g", "T")))
        waited.append(caught.value)
        say(clients)

    first.members.notices.say = join_meanwhile
    first.heartbeat(heartbeat("a", consumer("g", "T")))
    first.members.notices.say = say
    assert len(waited) == 1
    with pytest.raises(ClientIdInUseError, match="group g has a member a already"):
        second.heartbeat(heartbeat("a", consumer("g", "T")))
    assert second.consumer_ids("g") == ["a"]


def test_a_closing_ends_the_wait_of_a_client_that_joins(broker):
    path = broker.view.root / "rmqctl" / JOINS_LOCK
    broker.members._joins = ProcessLock(path, limit_s=60.0)
    broker.connect("a", RecordingClient())
    refused = []

    def join_group():
        with pytest.raises(WriteLockTimeoutError) as caught:
            broker.heartbeat(heartbeat("a", consumer("g", "T")))
        refused.append(caught.value)

    thread = threading.Thread(target=join_group)
    with ProcessLock(path).held():
        thread.start()
        eventually(lambda: descriptors_of(path) == 2)
        broker.close()
        thread.join(20)
        waits = thread.is_alive()
    thread.join()
    assert not waits
    assert len(refused) == 1


def descriptors_of(path):
    """How often this process has a file open."""
    links = list(Path("/proc/self/fd").iterdir())
    return sum(link.is_symlink() and link.readlink() == path for link in links)


@pytest.mark.conformance("B6")
def test_a_member_that_stays_and_one_that_gets_all_messages_wait_for_no_other_that_joins(broker):
    join(broker, "a")
    broker.connect("b", RecordingClient())
    lock = ProcessLock(broker.view.root / "rmqctl" / JOINS_LOCK)
    broker.members._joins = ProcessLock(broker.view.root / "rmqctl" / JOINS_LOCK, limit_s=0.0)
    with lock.held():
        broker.heartbeat(heartbeat("a", consumer("g", "T", "U")))
        broker.heartbeat(heartbeat("b", consumer("h", "T", model=BROADCASTING)))
        with pytest.raises(WriteLockTimeoutError):
            broker.heartbeat(heartbeat("b", consumer("g", "T")))
    assert broker.consumer_ids("g") == ["a"]
    assert broker.consumer_ids("h") == ["b"]


def test_a_member_whose_id_another_process_has_too_logs_it_with_each_heartbeat(open_broker, caplog):
    first, second = open_broker(), open_broker(BrokerConfig(refuse_equal_client_ids=False))
    join(first, "a")
    join(second, "a")
    first.heartbeat(heartbeat("a", consumer("g", "T")))
    second.heartbeat(heartbeat("a", consumer("g", "T")))
    assert [it for it in caplog.messages if "group g has a member a already" in it] == [
        f"group g has a member a already (process {os.getpid()} on {os.uname().nodename}): "
        "both would take the same queues; give one of them another instance name"
    ]


@pytest.mark.conformance("B6")
def test_where_equal_ids_are_let_in_the_group_has_one_twice_as_with_the_real_broker(open_broker):
    config = BrokerConfig(refuse_equal_client_ids=False)
    first, second = open_broker(config), open_broker(config)
    join(first, "a")
    join(second, "a")
    join(second, "b")
    assert first.consumer_ids("g") == ["a", "a", "b"]


class Leaving(RecordingClient):
    """It exits with each notice."""

    def notify_consumer_ids_changed(self, group: str) -> None:
        super().notify_consumer_ids_changed(group)
        raise SystemExit(3)


def test_a_client_that_exits_with_a_notice_keeps_no_other_from_getting_it(broker):
    leaving = Leaving()
    broker.connect("a", leaving)
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    here = join(broker, "b")
    assert here.wait_for("changed", "g")
    join(broker, "c")
    assert here.wait_for("changed", "g", times=2)
    assert leaving.wait_for("changed", "g", times=3)


def test_an_id_is_connected_once_and_before_it_says_anything(broker):
    with pytest.raises(BrokerSystemError, match="not connected"):
        broker.heartbeat(heartbeat("a", consumer("g", "T")))
    broker.connect("a", RecordingClient())
    with pytest.raises(BrokerSystemError, match="connected already"):
        broker.connect("a", RecordingClient())
    broker.disconnect("a")
    broker.disconnect("a")
    broker.connect("a", RecordingClient())


def test_a_reader_can_not_be_a_member(open_broker):
    reader = open_broker(read_only=True)
    with pytest.raises(NoPermissionError, match="reading only"):
        reader.connect("a", RecordingClient())
    assert not (reader.view.root / "rmqctl" / "members").exists()


@pytest.mark.slow
def test_a_client_of_another_process_answers_questions(broker):
    broker.send(Message("T", b"again"), 0)
    broker.send(Message("T", b"poison"), 0)
    broker.send(Message("T", b"exit"), 0)
    second, third = broker.view.unit("T", 0, 1), broker.view.unit("T", 0, 2)
    assert second is not None
    assert third is not None
    with broker_puppet(broker.view.root) as other:
        other.call("join", client_id="b", group="g")
        assert broker.consumer_running_info("g", "b") == {"group": "g", "threads": 20}
        assert broker.consumer_status("g", "T", "b") == {MessageQueue("T", "broker-a", 3): 41}
        result = broker.consume_message_directly("g", "b", 0)
        assert result == (False, True, ConsumeDirectlyStatus.CR_LATER, "again", 7)
        with pytest.raises(BrokerSystemError, match="ValueError: the listener broke"):
            broker.consume_message_directly("g", "b", second[0])
        with pytest.raises(BrokerSystemError, match="SystemExit: the listener left"):
            broker.consume_message_directly("g", "b", third[0])
        with pytest.raises(BrokerSystemError, match="no message at offset 17"):
            broker.consume_message_directly("g", "b", 17)
        with pytest.raises(BrokerSystemError, match="not online"):
            broker.consumer_running_info("g", "c")


@pytest.mark.crash
def test_a_question_to_a_process_that_dies_is_over_at_once(broker):
    with broker_puppet(broker.view.root) as other:
        other.call("join", client_id="b", group="g")
        broker.connect("a", RecordingClient())
        other.stop()
        outcome: list[Exception] = []

        def ask() -> None:
            try:
                broker.consumer_running_info("g", "b")
            except BrokerSystemError as error:
                outcome.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        control_messages = next((broker.view.root / "rmqctl" / "members").glob(f"{other.pid}-*.in"))
        # Notices that the group has changed lie there, too.
        while not any(
            b"running_info" in path.read_bytes()
            for path in control_messages.iterdir()
            if path.name[0] != "."
        ):
            os.sched_yield()
        other.kill()
        asking.join(5)
        assert "has ended" in str(outcome[0])


@pytest.mark.slow
def test_a_producer_of_another_process_is_asked_about_its_half_message(broker):
    broker.send(Message("T", b"half", properties={"own": "1"}))
    message = broker.view.look_message_by_offset(0)
    message.topic = "REAL"
    message.properties["REAL_QID"] = "4"
    request = CheckTransactionState("p", message, 11, 22, "id", "transaction")
    assert not broker.members.calls.check_transaction(request)
    with broker_puppet(broker.view.root) as other:
        other.call("produce_in", client_id="b", group="p")
        assert broker.members.calls.check_transaction(request)
        asked = other.call("was_asked_about", client_id="b")
    assert asked[:4] == ["p", 22, "REAL", "half"]
    assert asked[4] == message.properties


@pytest.mark.slow
def test_a_reader_asks_without_being_in_the_list_of_processes(broker, open_broker):
    reader = open_broker(read_only=True)
    processes = ProcessEntries(broker.view.root)
    with broker_puppet(broker.view.root) as member:
        member.call("join", client_id="b", group="g")
        before = set(processes.folder.iterdir())
        assert reader.members.calls.consumer_running_info("g", "b") == {"group": "g", "threads": 20}
        assert [info.name.partition("-")[0] for info in processes.living()] == [str(member.pid)]
        assert processes.dead() == []
        assert reader.members.notices.name is None
        reader.close()
        assert set(processes.folder.iterdir()) == before


@pytest.mark.slow
def test_a_reader_adopts_nothing_of_the_dead_and_removes_nothing(broker, open_broker):
    reader = open_broker(read_only=True)
    processes = ProcessEntries(broker.view.root)
    with (
        broker_puppet(broker.view.root) as member,
        broker_puppet(broker.view.root) as dead,
        ThreadPoolExecutor(1) as pool,
    ):
        member.call("join", client_id="b", group="g")
        dead.call("join", client_id="c", group="h")
        member.stop()  # or it would remove what the dead one has left
        dead.kill()
        (left,) = processes.dead()
        files = set(processes.folder.glob(f"{left.name}*"))
        answer = pool.submit(reader.members.calls.consumer_running_info, "g", "b")
        eventually(lambda: list(processes.folder.glob(f".{os.getpid()}-*.life")))
        member.kill()
        with pytest.raises(BrokerSystemError, match="has ended"):
            answer.result(5)
        reader.close()
        assert left in processes.dead()
        assert set(processes.folder.glob(f"{left.name}*")) == files


def test_what_a_killed_reader_has_left_is_removed_by_the_next_member_after_a_minute(broker):
    processes = ProcessEntries(broker.view.root)
    killed = ProcessEntry(processes, {}, listed=False)
    life = processes.life_path(f".{killed.name}")
    os.utime(life, (1, 1))
    processes.remove_unfinished()
    assert life.exists(), "its process lives"
    killed.after_fork()  # as a process that is gone: it removes nothing
    killed.close()
    assert processes.path(killed.name, ".in").exists()
    broker.connect("a", RecordingClient())
    (own,) = processes.living()
    assert {path.name.partition(".")[0] for path in processes.folder.iterdir()} == {own.name}


def test_queues_of_a_member_are_announced_and_read_by_others(broker, open_broker):
    queues = (MessageQueue("T", "a", 0), MessageQueue("T", "a", 3), MessageQueue("U", "b", 1))
    broker.connect("a", RecordingClient())
    broker.heartbeat(heartbeat("a", consumer("g", "T")._replace(queues=queues)))
    (seen,) = open_broker(read_only=True).consumer_connection("g")
    assert seen.consumer.queues == queues
    broker.heartbeat(heartbeat("a", consumer("g", "T")._replace(queues=())))
    (seen,) = open_broker(read_only=True).consumer_connection("g")
    assert seen.consumer.queues == ()
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    (seen,) = open_broker(read_only=True).consumer_connection("g")
    assert seen.consumer.queues is None


@pytest.mark.parametrize("said", [3, None, [["T"]], [["T", "a", 0]], {"T": 1}], ids=str)
def test_queues_that_cannot_be_read_leave_the_rest_of_a_member_as_it_is(broker, said):
    join(broker, "a", consumer("g", subscription("T", "A", 7))._replace(queues=()))
    notices = broker.members.notices
    path = notices.processes.path(notices.name, ".json")
    content = json.loads(path.read_bytes())
    content["clients"][0]["consumers"]["g"]["queues"] = said
    path.write_text(json.dumps(content))
    (seen,) = broker.consumer_connection("g")
    assert seen.consumer == consumer("g", subscription("T", "A", 7))
    assert list(broker.members.group_table("g").subscriptions) == ["T"]


def test_queues_of_members_are_read_only_for_those_who_want_them(broker):
    """Groups are looked at often, and a member may have thousands of queues."""
    queues = (MessageQueue("T", "a", 0), MessageQueue("T", "a", 3))
    join(broker, "a", consumer("g", "T")._replace(queues=queues))
    root, table = broker.view.root, broker.members.group_table("g")
    assert [member.consumer.queues for member in table.members] == [None]
    assert [member.consumer.queues for member in members_by_group(root)["g"]] == [None]
    (with_queues,) = members_by_group(root, with_queues=True)["g"]
    assert with_queues.consumer.queues == queues
    assert broker.consumer_connection("g")[0].consumer.queues == queues
