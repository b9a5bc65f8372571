"""Rows by hour and by day have all readable messages where one at the edge cannot be read."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.looks.topics import HOURS
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.store import MessageStore
from tests.support.cli import run

DAY_MS = 86_400_000
START = 1_767_225_600_000
"""2026-01-01 00:00:00 UTC"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty store that the commands find."""
    path = tmp_path / "s"
    MessageStore.create(path, SMALL_STORE)
    monkeypatch.setenv("RMQCTL_STORE", str(path))
    return path


@pytest.fixture
def five_days(root):
    """Five days of 10 messages in each of two queues of t, queue 1 begins an hour later; a sixth of
    one in u."""
    clock = [START]
    with EmbeddedBroker.open(root, clock=lambda: clock[0]) as broker:
        broker.update_topic(TopicConfig("t", 2, 2))
        broker.update_topic(TopicConfig("u", 1, 1))
        for day in range(5):
            for queue in (0, 1):
                clock[0] = START + day * DAY_MS + queue * DAY_MS // 24
                for _ in range(10):
                    broker.send(Message("t", b"x"), queue)
        clock[0] = START + 5 * DAY_MS
        broker.send(Message("u", b"x"), 0)
    return root


def damage(store, *messages):
    """Overwrite the magic of messages of t."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        places = [broker.view.unit("t", queue, offset) for queue, offset in messages]
    with (store / "commitlog" / f"{0:020d}").open("r+b") as file:
        for unit in places:
            assert unit is not None
            file.seek(unit[0] + 4)
            file.write(bytes(4))


def rows_of(*words):
    result = run(*words, "--tz", "UTC", "-o", "json")
    return result.code, {r["from_timestamp"]: r["messages"] for r in result.json()}, result.err


def hours(*words):
    return rows_of("topic", "stats", "t", "--by", "hour", *words)


def test_each_message_is_in_a_row(five_days):
    code, found, told = hours()
    assert (code, told) == (0, "")
    assert list(found.values()) == [10] * 10
    code, found, told = rows_of("store", "du", "--by", "day")
    assert (code, list(found.values())) == (0, [20] * 5 + [1])
    assert "in no row" not in told


EDGES = [
    pytest.param([(0, 0)], [9] + [10] * 9, [19, 20, 20, 20, 20, 1], id="the first"),
    pytest.param([(1, 49)], [10] * 9 + [9], [20, 20, 20, 20, 19, 1], id="the last"),
    pytest.param(
        [(0, 0), (0, 1), (1, 0), (0, 49), (1, 49)],
        [8, 9] + [10] * 6 + [9, 9],
        [17, 20, 20, 20, 18, 1],
        id="all edges",
    ),
]


@pytest.mark.parametrize(("damaged", "by_hour", "by_day"), EDGES)
def test_readable_messages_are_in_rows_and_the_others_are_told(five_days, damaged, by_hour, by_day):
    damage(five_days, *damaged)
    code, found, told = hours()
    assert (code, list(found.values())) == (8, by_hour)
    said = "1 message is in no row: its time is damaged, cannot be read or is out of order"
    if len(damaged) > 1:
        said = (
            f"{len(damaged)} messages are in no row: their time is damaged, cannot be read or is "
            "out of order"
        )
    assert f"topic t: {said}" in told
    code, found, told = rows_of("store", "du", "--by", "day")
    assert (code, list(found.values())) == (8, by_day)
    assert said in told
    assert list(found) == [START + day * DAY_MS for day in range(6)]
    assert shown(five_days) == (by_hour, [f"topic t: {said}"])


def shown(store):
    """What the console has of the same."""
    told: list[str] = []
    with EmbeddedBroker.open(store, read_only=True) as broker:
        source = Source(broker, now_ms(), told.append, {})
        return [row.messages for row in HOURS.read(source, Place("topic", ("t",)))], told


def test_no_message_can_be_read(root):
    with EmbeddedBroker.open(root) as broker:
        for topic in ("t", "u"):
            broker.update_topic(TopicConfig(topic, 1, 1))
            broker.send(Message(topic, b"x"), 0)
    damage(root, (0, 0))
    code, found, told = hours()
    assert (code, found) == (8, {})
    assert "topic t: 1 message is in no row" in told
