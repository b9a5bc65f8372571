"""Plans of settings say which messages become unreachable, and for which groups; fsck, too."""

import os
import time

import pytest

from broker.api.transactions import EndTransactionRequest, LocalTransactionState
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.format.message import (
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_TRANSACTION_PREPARED,
    Message,
)
from storage.format.message_id import parse_offset_msg_id
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.recording_client import RecordingClient, heartbeat

HOUR_S = 3_600


def moved(group, queue, offset):
    where = ["-g", group, "-t", f"t:{queue}", "--to-offset", offset]
    assert run("offset", "reset", *where, "--new-group", "-y").code == 0


@pytest.fixture
def read_in_part(store):
    """Four queues of two messages; group half has read those of queues 0 and 1."""
    run("topic", "create", "t", "--queues", 4)
    for queue in range(4):
        run("produce", "t", "--queue", queue, "-q", stdin=b"a\nb\n")
    for queue in range(4):
        end = 2 if queue < 2 else 0
        moved("half", queue, end)
    return store


def notes(*words):
    result = run(*words, "-n", "-o", "json")
    assert result.code == 0, result.err
    return {row["setting"]: row["note"] for row in result.json()}


@pytest.mark.slow
def test_fewer_read_queues_name_what_groups_have_not_read(read_in_part):
    assert notes("topic", "alter", "t", "-r", 2)["read_queue_nums"] == (
        "queues from 2 on are no longer read; 4 messages lie there: unread by half (4)"
    )


@pytest.mark.slow
def test_a_permission_names_what_groups_can_not_read_then(read_in_part):
    note = notes("topic", "alter", "t", "--perm", 2)["perm"]
    assert note == ("consuming will be refused; 8 messages lie there: unread by half (4)")
    assert notes("topic", "alter", "t", "--perm", 4)["perm"] == "sending will be refused"


@pytest.mark.slow
def test_a_group_without_progress_in_a_queue_is_unknown(store):
    run("topic", "create", "t", "--queues", 2)
    run("produce", "t", "--queue", 1, "-q", stdin=b"a\n")
    moved("g", 0, 0)
    assert "unknown for g" in notes("topic", "alter", "t", "--queues", 1)["read_queue_nums"]


@pytest.mark.slow
def test_a_group_that_gets_no_more_messages_names_its_unread_ones(read_in_part):
    run("group", "create", "half")
    assert notes("group", "alter", "half", "--no-consume-enable")["consume_enable"] == (
        "its members get no messages; 4 messages unread in t (4)"
    )


@pytest.mark.slow
def test_retry_limits_name_the_retries_that_wait(store):
    run("produce", "t", "-q", stdin=b"a\n")
    run("consume", "t", "-g", "g", "-e", "--exec", "false", "--max-reconsume-times", 3, "-q")
    run("group", "create", "g")
    assert notes("group", "alter", "g", "--retry-queue-nums", 0)["retry_queue_nums"] == (
        "failed messages are dropped without a retry; "
        "1 retry waits, 1 of it for a delay: it will be delivered, and a retry that fails again "
        "is dropped"
    )
    fewer = notes("group", "alter", "g", "--retry-max-times", 2)["retry_max_times"]
    assert "1 retry waits" in fewer
    assert (
        "retry waits"
        not in notes("group", "alter", "g", "--retry-max-times", 20)["retry_max_times"]
    )


@pytest.fixture
def a_day_old(tmp_path, monkeypatch):
    """A log of several files that were last written 30 hours ago; g has read one message."""
    root = tmp_path / "s"
    MessageStore.create(root, SMALL_STORE.with_(mapped_file_size_commit_log=16384))
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "-q", stdin=b"".join(b"%d" % n + b"x" * 5000 + b"\n" for n in range(9)))
    moved("g", 0, 1)
    then = time.time() - 30 * HOUR_S
    for path in (root / "commitlog").iterdir():
        os.utime(path, (then, then))
    return root


def planned(*words):
    result = run("broker", "config", "set", *words, "-n")
    assert result.code == 0, result.err
    return result.err


@pytest.mark.slow
def test_a_shorter_retention_names_files_messages_and_groups(a_day_old):
    said = planned("fileReservedTime", 1)
    assert "within 24 hours 2 files of the log with 6 messages may be deleted that would" in said
    assert "not read to the end by g, which would lose messages" in said
    assert "otherwise" not in planned("fileReservedTime", 71)
    assert "otherwise" not in planned("fileReservedTime", 720)


@pytest.mark.slow
def test_what_all_groups_have_read_is_told_as_such(a_day_old):
    moved("g", 0, 9)
    assert "every group with progress has read them" in planned("fileReservedTime", 1)


@pytest.mark.slow
def test_a_message_counts_once_whatever_light_queues_it_is_in(tmp_path, monkeypatch):
    root = tmp_path / "s"
    config = SMALL_STORE.with_(mapped_file_size_commit_log=16384, enable_multi_dispatch=True)
    MessageStore.create(root, config)
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    light = {PROPERTY_INNER_MULTI_DISPATCH: "%LMQ%a,%LMQ%b"}
    with EmbeddedBroker.open(root, store_config=config) as broker:
        for _ in range(9):
            broker.send(Message("t", bytes(5000), properties=light), 0)
        assert broker.view.max_offset_in_queue("%LMQ%b", 0) == 9
    then = time.time() - 30 * HOUR_S
    for path in (root / "commitlog").iterdir():
        os.utime(path, (then, then))
    assert "2 files of the log with 6 messages may be deleted" in planned("fileReservedTime", 1)
    assert "all topics; 9 messages lie there" in planned("brokerPermission", 2)
    rows = run("store", "clean", "--older-than", "1h", "-n", "-o", "json").json()
    assert [row["messages"] for row in rows] == [3, 3]


def test_no_hour_of_deletion_is_told(a_day_old):
    said = planned("deleteWhen", "")
    assert "no hour is set for deletions: files are deleted only while the disk is fuller" in said
    assert "no hour is set for deletions" in planned("deleteWhen", ";")
    assert "otherwise" not in said


@pytest.mark.slow
def test_a_permission_of_the_broker_names_what_lies_there(read_in_part):
    assert "consuming will be refused in all topics; 8 messages lie there" in planned(
        "brokerPermission", 2
    )
    assert "refused" not in planned("brokerPermission", 4)


@pytest.fixture
def asked_twice(store):
    """Half messages of two groups that were asked about twice, one that was not, one that ended."""
    clock = [1_700_000_000_000]
    config = BrokerConfig(transaction_timeout_ms=1_000)
    with EmbeddedBroker.open(store, config, clock=lambda: clock[0]) as broker:
        broker.connect("asked", RecordingClient())
        broker.heartbeat(heartbeat("asked", producers=("g", "h")))
        for group, body in (("g", b"a"), ("g", b"b"), ("h", b"c")):
            prepare(broker, group, body)
        sent = prepare(broker, "g", b"ended")
        broker.end_transaction(ending(sent, LocalTransactionState.COMMIT_MESSAGE))
        checks = broker.transaction_checks
        assert checks is not None
        for _ in range(2):
            clock[0] += 60_000
            checks.check()
        prepare(broker, "g", b"new")
    return store


def prepare(broker, group, body):
    properties = {PROPERTY_TRANSACTION_PREPARED: "true", PROPERTY_PRODUCER_GROUP: group}
    return broker.send(Message("t", body, properties=properties))


def ending(sent, state):
    _, log_offset = parse_offset_msg_id(sent.offset_msg_id)
    return EndTransactionRequest("g", sent.queue_offset, log_offset, state)


def test_fewer_checks_name_the_half_messages_that_are_given_up(asked_twice):
    said = planned("transactionCheckMax", 2)
    assert "3 half messages of open transactions were checked 2 times or more" in said
    assert "of g (2), h (1)" in said
    assert "TRANS_CHECK_MAX_TIME_TOPIC" in said
    for enough in (3, 15, 20):
        assert "half message" not in planned("transactionCheckMax", enough)


def test_fsck_shows_what_waits_in_levels_that_are_gone(store):
    run("produce", "t", "--delay-level", 18, "-q", stdin=b"a\nb\n")
    assert "DELAY_LEVEL_GONE" not in run("store", "fsck").out
    assert run("broker", "config", "set", "messageDelayLevel", "1s 5s 10s", "--yes").code == 0
    found = run("store", "fsck", "-o", "json").json()["findings"]
    (row,) = [row for row in found if row["code"] == "DELAY_LEVEL_GONE"]
    assert row["severity"] == "warning"
    assert row["what"] == "2 messages wait in delay level 18; messageDelayLevel has 3 levels"
    assert "at least 18 levels" in row["fix"]
    assert run("broker", "config", "set", "messageDelayLevel", "--unset", "--yes").code == 0
    assert "DELAY_LEVEL_GONE" not in run("store", "fsck").out


@pytest.mark.slow
def test_progress_beyond_the_end_is_no_read_message(read_in_part, store):
    moved("far", 3, 2)
    path = store / "config" / "consumerOffset.json"
    table = path.read_text().replace('"t@far":{3:2', '"t@far":{3:900')
    assert ":900" in table
    for name in ("offsets.log", "offsets.json"):
        (store / "rmqctl" / name).unlink(missing_ok=True)
    path.write_text(table)
    said = str(notes("topic", "alter", "t", "--read-queues", 3))
    assert "unknown for far, without progress in some queue or beyond its end" in said
