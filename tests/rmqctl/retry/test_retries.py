"""``retry``: what waits, what is ready, what is late."""

import shutil

import pytest

from broker.api.send_back import SendBackRequest
from broker.embedded.broker import EmbeddedBroker
from storage.configs.delay_offsets import save_delay_offsets
from storage.format.message import Message
from tests.support.cli import run
from tests.support.dead_letters import NOW_MS, deliver, give_back


def rows(group, *options):
    return run("retry", "browse", group, "-o", "json", *options).json()


def agenda(*options):
    return run("retry", "agenda", "-o", "json", *options).json()


@pytest.fixture
def given_back(store):
    """Three messages of topic t; group g has given two of them back, h the third as dead."""
    with EmbeddedBroker.open(store) as broker:
        stored = []
        for n in range(3):
            sent = broker.send(Message("t", b"x", keys=f"k{n}", tags="T"), 0)
            stored += broker.query_unique("t", sent.msg_id)
        give_back(broker, "g", stored[0], level=5, why="one")
        give_back(broker, "g", stored[1], level=1, why=None)
        give_back(broker, "h", stored[2])
    return stored


@pytest.mark.feature(85)
def test_what_waits_is_shown_with_its_time_and_its_reason(given_back):
    first, second = rows("g")
    assert (second["keys"], first["keys"]) == (["k0"], ["k1"]), "who is due first comes first"
    assert second["due_timestamp"] - first["due_timestamp"] == pytest.approx(59_000, abs=500)
    assert (second["reason"], first["reason"]) == ("RuntimeError: one", None)
    assert (second["failed_timestamp"], second["client"]) == (NOW_MS, "client@1")
    assert first["due_timestamp"] - first["failed_timestamp"] == 1_000, "stored when it failed"
    assert {row["state"] for row in (first, second)} <= {"WAITING", "OVERDUE"}
    assert [row["reconsume_times"] for row in (first, second)] == [1, 1]
    origin = given_back[1]
    assert (first["origin_topic"], first["origin_queue_id"], first["origin_offset"]) == (
        "t",
        0,
        origin.queue_offset,
    )


def test_filters_choose_among_retries(given_back):
    assert [row["keys"] for row in rows("g", "-k", "k0")] == [["k0"]]
    assert [row["keys"] for row in rows("g", "--to", "-1h")] == []
    assert rows("g", "--attempts", "2..") == []
    assert rows("g", "--queue", "7") == []


def test_a_group_that_has_none_is_empty_and_an_unknown_one_is_not_found(given_back):
    assert rows("h") == []
    missing = run("retry", "browse", "nobody")
    assert (missing.code, missing.out) == (3, "")


@pytest.mark.slow
def test_what_was_delivered_is_ready_until_the_group_has_read_past_it(given_back, store):
    clock = given_back[0].store_timestamp + 10_000
    with EmbeddedBroker.open(store, clock=lambda: clock) as broker:
        deliver(broker, clock)
    ready, waits = sorted(rows("g"), key=lambda row: row["state"])
    assert (ready["state"], ready["keys"]) == ("READY", ["k1"])
    assert (waits["state"] in ("WAITING", "OVERDUE"), waits["keys"]) == (True, ["k0"])
    with EmbeddedBroker.open(store) as broker:
        broker.progress.move("g", {("%RETRY%g", 0): 1})
    assert [row["keys"] for row in rows("g")] == [["k0"]]
    assert rows("g", "--all")[0]["state"] == "CONSUMED"


def test_who_was_due_first_comes_first_wherever_it_is(given_back, store):
    clock = given_back[0].store_timestamp + 10_000
    due = [row["due_timestamp"] for row in rows("g")]
    with EmbeddedBroker.open(store, clock=lambda: clock) as broker:
        deliver(broker, clock)
    found = rows("g")
    assert [row["keys"] for row in found] == [["k1"], ["k0"]]
    assert found[0]["state"] == "READY"
    assert [row["due_timestamp"] for row in found] == due, "a delivery does not change it"
    assert rows("g", "--limit", "1") == found[:1]


def test_a_due_time_that_is_unknown_is_null(given_back, store, tmp_path):
    clock = given_back[0].store_timestamp + 10_000
    with EmbeddedBroker.open(store, clock=lambda: clock) as broker:
        deliver(broker, clock)
    damaged = shutil.copytree(store, tmp_path / "damaged")
    shutil.rmtree(damaged / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / "0")
    found = {row["state"]: row for row in rows("g", "-S", damaged)}
    assert (found["READY"]["keys"], found["READY"]["due_timestamp"]) == (["k1"], None)


def test_an_unknown_number_of_retries_is_not_shown_as_none(given_back, store):
    clock = given_back[0].store_timestamp + 10_000
    with EmbeddedBroker.open(store, clock=lambda: clock) as broker:
        deliver(broker, clock)
        broker.progress.move("g", {("%RETRY%g", 0): 1000})
    result = run("retry", "browse", "g", "-o", "json")
    assert [row["keys"] for row in result.json()] == [["k0"]]
    assert "how many retries wait is unknown: progress 1000 in %RETRY%g, queue 0" in result.err
    assert result.code == 8
    states = {row["keys"][0]: row["state"] for row in rows("g", "--all")}
    assert states["k1"] is None
    (lag,) = run("lag", "show", "g", "-t", "%RETRY%g", "-o", "json").json()
    assert lag["retry"] is None


def test_what_was_delivered_after_the_saved_offset_does_not_wait_any_more(given_back, store):
    clock = given_back[0].store_timestamp + 10_000
    with EmbeddedBroker.open(store, clock=lambda: clock) as broker:
        deliver(broker, clock)
    save_delay_offsets(store, {1: 0})  # a kill right after the delivery
    assert [(row["keys"], row["state"] == "READY") for row in rows("g")] == [
        (["k1"], True),
        (["k0"], False),
    ]
    assert [row["level"] for row in agenda()] == [5]


def test_a_message_that_was_given_back_twice_waits_until_both_have_come(store):
    with EmbeddedBroker.open(store) as broker:
        sent = broker.send(Message("t", b"x"), 0)
        (stored,) = broker.query_unique("t", sent.msg_id)
        clock = stored.store_timestamp
    with EmbeddedBroker.open(store, clock=lambda: clock) as broker:
        give_back(broker, "g", stored, level=5)
        clock += 30_000
        give_back(broker, "g", stored, level=5)
        clock += 31_000
        deliver(broker, clock)
    for saved in (0, 1):
        save_delay_offsets(store, {5: saved})
        assert [row["state"] == "READY" for row in rows("g")] == [True, False]


@pytest.mark.feature(86)
def test_each_delayed_message_has_its_due_time(given_back, store):
    with EmbeddedBroker.open(store) as broker:
        later = broker.send(Message("later", b"x", delay_time_level=4, keys="slow"))
    rows = run("retry", "agenda", "--each", "-o", "json").json()
    assert [(row["level"], row["topic"], row["keys"], row["reconsume_times"]) for row in rows] == [
        (1, "%RETRY%g", ["k1"], 1),
        (4, "later", ["slow"], 0),
        (5, "%RETRY%g", ["k0"], 1),
    ]
    assert [row["due_timestamp"] - row["store_timestamp"] for row in rows] == [
        1_000,
        30_000,
        60_000,
    ]
    assert rows[1]["msg_id"] == later.msg_id
    chosen = run("retry", "agenda", "--each", "-k", "slow", "-o", "json").json()
    assert chosen == [rows[1]]
    assert run("retry", "agenda", "-k", "slow").code == 2


@pytest.mark.feature(56)
def test_depths_of_retries_and_dead_letters_stand_beside_the_lag(given_back, store):
    clock = given_back[0].store_timestamp + 10_000
    with EmbeddedBroker.open(store, clock=lambda: clock) as broker:
        deliver(broker, clock)
        broker.progress.move("g", {("t", 0): 1})
        broker.progress.move("h", {("t", 0): 3})
    rows = run("lag", "show", "-o", "json").json()
    lags = {(row["group"], row["topic"]): (row["lag"], row["retry"], row["dlq"]) for row in rows}
    assert lags["g", "t"] == (2, 2, 0)  # one has come, one still waits for its time
    assert lags["h", "t"] == (0, 0, 1)


@pytest.mark.feature(86)
@pytest.mark.slow
def test_the_agenda_says_what_goes_where_and_what_is_late(given_back, store):
    with EmbeddedBroker.open(store) as broker:
        for _ in range(2):
            broker.send(Message("later", b"x", delay_time_level=18))
    first, second, third = agenda()
    assert [(row["level"], row["topic"], row["group"], row["messages"]) for row in agenda()] == [
        (1, "%RETRY%g", "g", 1),
        (5, "%RETRY%g", "g", 1),
        (18, "later", None, 2),
    ]
    assert third["delay_ms"] == 7_200_000
    assert (third["state"], third["overdue"]) == ("OK", 0)
    while first["overdue"] == 0:
        first, second, _ = agenda()
    assert (first["state"], second["state"]) == ("OVERDUE", "OK")
    assert "broker start" in run("retry", "agenda").err


def test_a_saved_offset_behind_the_end_is_seen(given_back, store):
    save_delay_offsets(store, {5: 99})
    with EmbeddedBroker.open(store) as broker:
        broker.send(Message("later", b"x", delay_time_level=18))
    states = {row["level"]: (row["state"], row["saved_offset"]) for row in agenda()}
    assert states[18] == ("OK", None)
    assert states[5] == ("AHEAD", 99)
    mended = run("store", "recover-config", "--execute", "-y")  # so that the store is healthy
    assert mended.code == 0, mended.err
    assert {row["level"]: row["state"] for row in agenda()}[5] != "AHEAD"


@pytest.mark.slow
def test_a_life_tells_of_every_attempt_and_why(given_back, store):
    now = given_back[0].store_timestamp
    with EmbeddedBroker.open(store, clock=lambda: now) as broker:
        for times in range(2):
            now += 3_600_000
            deliver(broker, now)
            (retry,) = broker.view.get_message("%RETRY%g", 0, 1 + times, 1).messages
            give_back(broker, "g", retry, level=-1 if times else 2, why=f"time {times}")
    for wanted in (given_back[0].msg_id, given_back[0].offset_msg_id):
        life = run("retry", "show", "g", wanted, "-o", "json").json()
        assert [(row["what"], row["reconsume_times"], row["reason"]) for row in life] == [
            ("STORED", 0, None),
            ("FAILED", 1, "RuntimeError: one"),
            ("DELIVERED", 1, None),
            ("FAILED", 2, "RuntimeError: time 0"),
            ("DELIVERED", 2, None),
            ("DEAD", 3, "RuntimeError: time 1"),
        ]
        assert life[1]["due_timestamp"] - life[1]["at_timestamp"] == 60_000
    assert run("retry", "show", "g", "7F" * 16).code == 3


@pytest.mark.slow
def test_a_life_has_every_attempt_of_a_message_that_failed_often(store):
    attempts, topic, clock = 70, "%RETRY%g", [NOW_MS]
    with EmbeddedBroker.open(store, clock=lambda: clock[0]) as broker:
        sent = broker.send(Message("t", b"x"), 0)
        (message,) = broker.query_unique("t", sent.msg_id)
        for n in range(attempts):
            origin = message.topic, message.commitlog_offset, message.msg_id
            broker.send_message_back(SendBackRequest("g", *origin, 1, attempts))
            clock[0] += 2_000
            deliver(broker, clock[0])
            (message,) = broker.view.get_message(topic, 0, n, 1).messages
    events = run("retry", "show", "g", sent.msg_id, "-o", "json").json()
    failed = [event["reconsume_times"] for event in events if event["what"] == "FAILED"]
    delivered = [event["reconsume_times"] for event in events if event["what"] == "DELIVERED"]
    assert failed == delivered == list(range(1, attempts + 1))
    assert [event["what"] for event in events].count("STORED") == 1


@pytest.mark.slow
@pytest.mark.parametrize("wanted", ["order-7a", "ORIGIN"])
@pytest.mark.parametrize("state", ["waiting", "ready", "dead"])
def test_an_id_with_small_letters_is_found(store, state, wanted):
    """One that a user has set; in the other case it is another id."""
    now = NOW_MS
    with EmbeddedBroker.open(store, clock=lambda: now) as broker:
        for unique in ("order-7a", "order-8a"):
            broker.send(Message("t", b"x", properties={"UNIQ_KEY": unique}), 0)
            (stored,) = broker.query_unique("t", unique)
            give_back(broker, "g", stored, level=-1 if state == "dead" else 1)
            if wanted == "ORIGIN" and unique == "order-7a":
                wanted = stored.offset_msg_id
        if state == "ready":
            now += 3_600_000
            deliver(broker, now)
    shown = run("retry", "show", "g", wanted, "-o", "json")
    assert shown.code == 0, shown.err
    assert {row["msg_id"] for row in shown.json()} == {"order-7a"}
    assert {"waiting": "FAILED", "ready": "DELIVERED", "dead": "DEAD"}[state] in {
        row["what"] for row in shown.json()
    }
