"""The first and the last time of several queues is unknown where that of one of them is."""

from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl import admin
from rmqctl.console.health import deletion_line
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.readonly import StoreView
from tests.support.cli import run

DAY_MS = 86_400_000
START = 1_767_225_600_000
"""2026-01-01 00:00:00 UTC"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two messages in each of two queues of t; those of queue 1 came four days later, a day apart,
    in the midst of those of queue 0; queue 2 has none."""
    path = tmp_path / "s"
    create_store(path, SMALL_STORE)
    clock = [START]
    with EmbeddedBroker.open(path, clock=lambda: clock[0]) as broker:
        broker.update_topic(TopicConfig("t", 3, 3))
        for day, queue in ((0, 0), (4, 1), (5, 1), (9, 0)):
            clock[0] = START + day * DAY_MS
            broker.send(Message("t", b"x"), queue)
        broker.update_topic(TopicConfig("u", 1, 1))
        broker.send(Message("u", b"the log ends after a whole record"), 0)
    monkeypatch.setenv("RMQCTL_STORE", str(path))
    return path


def damage(root: Path, queue_id: int, offset: int, topic: str = "t") -> None:
    with StoreView.open(root) as view:
        unit = view.unit(topic, queue_id, offset)
    assert unit is not None
    with (root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(unit[0] + 4)
        file.write(bytes(4))


TIMES = [
    pytest.param(None, START, START + 9 * DAY_MS, id="none"),
    pytest.param(0, None, START + 9 * DAY_MS, id="the first"),
    pytest.param(1, START, None, id="the last"),
]


@pytest.mark.parametrize(("damaged", "first", "last"), TIMES)
def test_no_command_shows_the_time_of_another_queue(
    root: Path, damaged: int | None, first: int | None, last: int | None
) -> None:
    if damaged is not None:
        damage(root, 0, damaged)
    described = run("topic", "describe", "t", "-o", "json").json()
    assert (described["first_timestamp"], described["last_timestamp"]) == (first, last)
    (stats,) = run("topic", "stats", "t", "-o", "json").json()
    assert (stats["first_timestamp"], stats["last_timestamp"]) == (first, last)
    known = first is not None and last is not None
    assert stats["rate"] == (pytest.approx(4 / (9 * 86_400)) if known else None)
    assert (stats["bytes_rate"] is not None) == known
    info = run("store", "info", "-o", "json").json()
    assert (info["first_timestamp"], info["last_timestamp"]) == (first, last)
    for command in (("topic", "usage"), ("store", "du")):
        (row,) = (r for r in run(*command, "-o", "json").json() if r["topic"] == "t")
        assert (row["oldest_timestamp"], row["newest_timestamp"]) == (first, last)


def test_the_times_of_a_group_are_unknown_where_those_of_one_of_its_topics_are(root: Path) -> None:
    with EmbeddedBroker.open(root, clock=lambda: START + 9 * DAY_MS) as broker:
        for topic in ("%RETRY%g", "%DLQ%g"):
            broker.update_topic(TopicConfig(topic, 1, 1))
            broker.send(Message(topic, b"x"), 0)
    words = ("store", "du", "--by", "group", "-o", "json")
    (row,) = run(*words).json()
    assert (row["messages"], row["oldest_timestamp"]) == (2, START + 9 * DAY_MS)
    damage(root, 0, 0, "%RETRY%g")
    (row,) = run(*words).json()
    assert (row["messages"], row["oldest_timestamp"], row["newest_timestamp"]) == (2, None, None)


def test_the_console_shows_no_age_of_an_oldest_message_that_cannot_be_read(root: Path) -> None:
    damage(root, 0, 0)
    with EmbeddedBroker.open(root, read_only=True) as broker:
        line = deletion_line(admin.store.info(broker.view), None, START)
    assert "".join(span.text for span in line).split()[:2] == ["OLDEST", "?"]
