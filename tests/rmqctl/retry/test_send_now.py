"""``retry now`` and ``retry dead``: ending a wait."""

import errno
import os

import pytest

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from storage.configs.early_deliveries import EarlyDeliveries
from storage.format.message import Message
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.dead_letters import deliver, give_back
from tests.support.java_lock import java_lock

HOUR = 3_600_000


@pytest.fixture
def waiting(store):
    """Three retries of group g that wait for an hour and more; gives the first messages."""
    with EmbeddedBroker.open(store) as broker:
        stored = []
        for n in range(3):
            sent = broker.send(Message("t", b"%d" % n, tags=f"T{n}", keys=f"k{n}"), 0)
            stored += broker.query_unique("t", sent.msg_id)
            give_back(broker, "g", stored[n], level=17, why=f"reason {n}")
    return stored


def bodies(topic):
    found = run("consume", topic, "-e", "-o", "json", "-q")
    return [message["body"] for message in found.json()] if found.code == 0 else []


def browse(*options):
    return [row["keys"][0] for row in run("retry", "browse", "g", "-o", "json", *options).json()]


def time_passes(store, config=None):
    """All that waits comes due and is delivered."""
    with StoreView.open(store) as view:
        (newest,) = view.get_message("SCHEDULE_TOPIC_XXXX", 16, 2, 1).messages
    later = newest.store_timestamp + 3 * HOUR
    with EmbeddedBroker.open(store, config, clock=lambda: later) as broker:
        deliver(broker, later)


@pytest.mark.slow
@pytest.mark.parametrize("config", [None, BrokerConfig(enable_schedule_async_deliver=True)])
def test_what_is_sent_now_does_not_come_a_second_time(waiting, store, config):
    done = run("retry", "now", "g", waiting[1].msg_id, "-y", "-o", "json")
    assert done.code == 0
    (row,) = done.json()
    assert (row["target"], row["queue_offset"], row["applied"]) == ("%RETRY%g", 0, True)
    assert bodies("%RETRY%g") == ["1"]
    assert browse() == ["k1", "k0", "k2"], "what was sent early was due then"
    time_passes(store, config)
    assert bodies("%RETRY%g") == ["1", "0", "2"]


@pytest.mark.slow
def test_it_is_the_record_that_its_time_would_have_brought(waiting, store, tmp_path):

    copy = tmp_path / "copy"
    copy_store(store, copy)
    run("retry", "now", "g", "--all", "-y")
    time_passes(copy)
    fields = "queue_offset,body,msg_id,properties,reconsume_times,born_timestamp,flag,keys,tags"
    shape = ("-e", "-o", "json", "--columns", fields)
    now = run("consume", "%RETRY%g", *shape).json()
    assert len(now) == 3
    assert now == run("consume", "%RETRY%g", *shape, "-S", copy).json()


@pytest.mark.slow
def test_what_is_buried_is_not_tried_again_and_keeps_its_reason(waiting, store):
    done = run("retry", "dead", "g", "--tag", "T0 || T2", "-y", "-o", "json")
    assert [(row["target"], row["queue_offset"]) for row in done.json()] == [
        ("%DLQ%g", 0),
        ("%DLQ%g", 1),
    ]
    dead_letters = run("dlq", "browse", "g", "-o", "json").json()
    assert [(row["keys"], row["reason"], row["reconsume_times"]) for row in dead_letters] == [
        (["k0"], "RuntimeError: reason 0", 1),
        (["k2"], "RuntimeError: reason 2", 1),
    ]
    assert [row["origin_topic"] for row in dead_letters] == ["t", "t"]
    assert browse() == ["k1"]
    time_passes(store)
    assert bodies("%RETRY%g") == ["1"]
    life = run("retry", "show", "g", waiting[0].msg_id, "-o", "json").json()
    assert [event["what"] for event in life] == ["STORED", "FAILED", "DEAD"]


def test_a_kill_before_the_note_has_it_come_twice_and_never_not_at_all(waiting, store):
    run("retry", "now", "g", waiting[0].msg_id, "-y")
    EarlyDeliveries(store).path.unlink()
    time_passes(store)
    assert sorted(bodies("%RETRY%g")) == ["0", "0", "1", "2"]


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "target"), [("now", "%RETRY%g"), ("dead", "%DLQ%g")])
def test_after_a_kill_before_the_note_the_same_command_sends_nothing_again(
    waiting, store, verb, target
):
    run("retry", verb, "g", waiting[1].msg_id, "-y")
    EarlyDeliveries(store).path.unlink()
    done = run("retry", verb, "g", "--all", "-y", "-o", "json")
    assert sorted(row["queue_offset"] for row in done.json()) == [0, 1, 2]
    assert sorted(bodies(target)) == ["0", "1", "2"]
    time_passes(store)
    assert sorted(bodies(target)) == ["0", "1", "2"]


@pytest.mark.parametrize(("verb", "target"), [("now", "%RETRY%g"), ("dead", "%DLQ%g")])
def test_a_retry_that_two_ids_name_is_sent_once(waiting, store, verb, target):
    with StoreView.open(store) as view:
        (waits,) = view.get_message("SCHEDULE_TOPIC_XXXX", 16, 1, 1).messages
    unique = waiting[1].msg_id
    ids = [unique, unique.lower(), waits.offset_msg_id, waiting[1].offset_msg_id]
    assert len(set(ids)) == 4
    done = run("retry", verb, "g", *ids, "-y", "-o", "json")
    assert [row["msg_id"] for row in done.json()] == [unique]
    assert bodies(target) == ["1"]
    entry = run("audit", "list", "-o", "json").json()[-1]
    assert entry["new"]["msg_ids"] == [unique]


def test_a_retry_that_two_ids_name_and_that_waits_no_longer_is_skipped_once(waiting):
    unique = waiting[1].msg_id
    run("retry", "now", "g", unique, "-y")
    again = run("retry", "now", "g", unique, unique.lower(), "-y", "-o", "json")
    assert [row["applied"] for row in again.json()] == [False]


@pytest.mark.slow
def test_nothing_is_sent_unasked(waiting, store):
    assert run("retry", "now", "g").code == 2, "nothing defaults to all"
    assert run("retry", "now", "g", "--all").code == 7
    assert run("retry", "now", "g", "--all", "--dry-run").code == 0
    assert run("retry", "now", "g", "7F" * 16, "-y").code == 3
    with java_lock(store):
        assert run("retry", "dead", "g", "--all", "-y").code == 5
    assert browse() == ["k0", "k1", "k2"]
    assert not EarlyDeliveries(store).path.exists()


@pytest.mark.slow
def test_in_the_store_of_a_java_broker_it_is_said_what_it_would_do(tmp_path):
    from tests.support import golden

    root = golden.extract("retry-dlq-4.9", tmp_path)
    (root / "config" / "delayOffset.json").write_text('{"offsetTable":{}}')
    (root / "config" / "delayOffset.json.bak").unlink()
    rows = run("retry", "browse", "g-slow", "-S", root, "-o", "json").json()
    assert {row["state"] for row in rows} == {"READY"}, "they were delivered"
    with EmbeddedBroker.open(root) as broker:
        retry = broker.view.get_message("%RETRY%g-slow", 0, 3, 1).messages[0]
        give_back(broker, "g-slow", retry, level=17)
    done = run("retry", "now", "g-slow", retry.msg_id, "-S", root, "-y")
    assert (done.code, "a Java broker" in done.err) == (0, True)


@pytest.mark.slow
def test_a_note_is_dropped_when_delivery_has_passed_it(waiting, store):
    ended = EarlyDeliveries(store)
    run("retry", "now", "g", waiting[0].msg_id, "-y")
    (place,) = ended._load()[16]
    assert ended.has(16, *place)
    time_passes(store)
    with EmbeddedBroker.open(store) as broker:
        give_back(broker, "g", waiting[0], level=17)
    run("retry", "now", "g", "--all", "-y")
    assert [offset for offset, _ in ended._load()[16]] == [3]


@pytest.mark.slow
def test_a_damaged_note_file_loses_no_message(waiting, store):
    run("retry", "now", "g", waiting[0].msg_id, "-y")
    path = EarlyDeliveries(store).path
    path.write_bytes(path.read_bytes()[:-2])
    time_passes(store)
    assert sorted(bodies("%RETRY%g")) == ["0", "0", "1", "2"]
    with EmbeddedBroker.open(store) as broker:
        give_back(broker, "g", waiting[1], level=17)
    assert run("retry", "now", "g", "--all", "-y").code == 4
    path.unlink()  # the store is checked when the test is over


@pytest.mark.parametrize("command", ["now", "dead"])
def test_what_no_longer_waits_is_said_where_nothing_that_waits_matches(waiting, store, command):
    run("retry", "now", "g", "-k", "k1", "-y")
    result = run("retry", command, "g", "-k", "k1", "-y")
    assert "there is nothing to change" in result.err
    assert "1 retry matches and no longer waits: the group reads it next" in result.err
    assert "no longer wait" not in run("retry", command, "g", "-k", "k7", "-y").err
    assert "no longer wait" not in run("retry", command, "g", "-k", "k0", "-n").err
    for other in (("--to", "-1h"), ("-k", "k1", "--queue", 7)):
        result = run("retry", command, "g", *other, "-y")
        assert "there is nothing to change" in result.err
        assert "no longer wait" not in result.err


@pytest.mark.slow
def test_a_retry_that_waits_no_longer_is_skipped_without_a_question(waiting, store):
    run("retry", "now", "g", waiting[1].msg_id, "-y")
    entries = len(run("audit", "list", "-o", "json").json())
    again = run("retry", "now", "g", waiting[1].msg_id, "-y", "-o", "json")
    assert again.code == 0
    (row,) = again.json()
    assert (row["applied"], row["note"]) == (False, "skipped: the group can read it already")
    assert "there is nothing to change" in again.err
    assert len(run("audit", "list", "-o", "json").json()) == entries


@pytest.mark.slow
@pytest.mark.parametrize(("command", "target"), [("now", "%RETRY%g"), ("dead", "%DLQ%g")])
def test_a_disk_that_is_full_after_the_messages_were_sent_is_said_with_their_number(
    waiting, monkeypatch, command, target
):
    write = os.pwrite

    def pwrite(fd, data, offset):
        if b'"queues"' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data, offset)

    ids = [message.msg_id for message in waiting[:2]]
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", pwrite)
        done = run("retry", command, "g", *ids, "-y", "-o", "json")
    assert done.code == 8, done.err
    assert "delays-ended.json cannot be written: No space left on device" in done.err
    assert "2 messages had been sent" in done.err
    assert bodies(target) == ["0", "1"]
    assert run("retry", command, "g", *ids, "-y").code == 0
    assert bodies(target) == ["0", "1"]
