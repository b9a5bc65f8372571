"""Days in which the clock is changed are one row each, and every message is in one row."""

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.cli import run

BERLIN = ZoneInfo("Europe/Berlin")
STORED = {
    "2025-03-29": ["12:00"],
    "2025-03-30": ["01:30", "12:00"],
    "2025-03-31": ["00:30", "12:00"],
    "2025-10-25": ["12:00"],
    "2025-10-26": ["00:30", "12:00", "18:00", "23:30"],
    "2025-10-27": ["12:00"],
}


def milliseconds(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp() * 1000)


@pytest.fixture
def in_berlin(store, monkeypatch):
    """Messages around both changes of the clock; the local zone is that of Berlin."""
    clock = [0]
    with EmbeddedBroker.open(store, clock=lambda: clock[0]) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        for day, times in STORED.items():
            for at in times:
                clock[0] = milliseconds(f"{day}T{at}")
                broker.send(Message("t", b"x", tags="a"), 0)
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield store
    time.tzset()


@pytest.mark.parametrize("zone", ["local", "Europe/Berlin"])
@pytest.mark.parametrize(
    ("words", "begin"),
    [
        (("store", "du", "--by", "day"), "from_timestamp"),
        (("message", "stats", "--by", "day"), "start_timestamp"),
        (("message", "stats", "--by", "day,tag"), "start_timestamp"),
    ],
    ids=["du", "stats", "stats of two"],
)
def test_a_day_is_one_row(in_berlin, words, begin, zone):
    rows = run(*words, "--tz", zone, "-o", "json").json()
    found = {row[begin]: row["messages"] for row in rows}
    assert len(found) == len(rows)
    assert found == {milliseconds(day): len(times) for day, times in STORED.items()}
