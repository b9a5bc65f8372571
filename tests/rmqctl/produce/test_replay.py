"""``--speed``: messages with the times between them."""

import json

import pytest

from rmqctl.produce.parsers import Outgoing
from rmqctl.produce.replay import parse_speed, replayed
from rmqctl.produce.sender import InvalidRecordError
from rmqctl.produce.sources import Portion
from tests.support.cli import run


class Clock:
    """A clock that only sleeping advances."""

    def __init__(self):
        self.now = 100.0
        self.slept = []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(round(seconds, 6))
        self.now += seconds


def portion(*times):
    messages = [Outgoing(b"x", store_timestamp=time) for time in times]
    return Portion(None, messages, range(1, 1 + len(times)))


def sent(portions, speed):
    """The times, from the first, at which messages are handed on."""
    clock = Clock()
    at = []
    for one in replayed(iter(portions), speed, clock, clock.sleep):
        at += [(round(clock.now - 100, 6), m.store_timestamp) for m in one.messages]
    return at, clock


@pytest.mark.parametrize(
    ("speed", "factor"), [("1", 1.0), ("0.5", 2.0), ("2x", 0.5), (" 10 ", 0.1)]
)
def test_each_message_is_due_at_its_time_times_the_speed(speed, factor):
    times = [5000, 5000, 5500, 8000]
    at, _ = sent([portion(*times[:3]), portion(*times[3:])], parse_speed(speed))
    assert at == [(round((time - 5000) / 1000 * factor, 6), time) for time in times]


def test_messages_of_one_tick_go_together_and_old_times_do_not_wait():
    at, clock = sent([portion(1000, 1000, 900, 1500)], 1.0)
    assert [time for _, time in at] == [1000, 1000, 900, 1500]
    assert clock.slept == [0.5]


def test_a_late_message_does_not_make_later_ones_late():
    clock = Clock()
    at = []
    for one in replayed(iter([portion(0), portion(1000), portion(2000)]), 1.0, clock, clock.sleep):
        at.append(round(clock.now - 100, 3))
        if one.messages[0].store_timestamp == 0:
            clock.now += 1.5  # the first send takes long
    assert at == [0.0, 1.5, 2.0]


def test_a_record_without_a_time_is_named():
    with pytest.raises(InvalidRecordError, match="store_timestamp, which --speed needs"):
        list(replayed(iter([Portion(None, [Outgoing(b"x")], range(7, 8))]), 1.0))


@pytest.mark.parametrize("text", ["0", "-1", "half", "inf", "nan", ""])
def test_what_is_no_speed(text):
    with pytest.raises(ValueError, match="is not a speed"):
        parse_speed(text)


@pytest.mark.parametrize(
    "command",
    [
        ["produce", "copy", "--input", "jsonl", "--speed", "1000"],
        ["message", "import", "-", "-t", "copy", "--speed", "1000x"],
    ],
)
def test_an_export_is_replayed(store, command):
    run("produce", "orders", "-q", stdin=b"a\nb\n")
    exported = run("message", "export", "orders").raw
    rows = [json.loads(line) for line in exported.splitlines()]
    rows[1]["store_timestamp"] = rows[0]["store_timestamp"] + 2000
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert run(*command, stdin=lines).code == 0
    copied = run("consume", "copy", "-e", "-o", "json").json()
    assert sorted(row["body"] for row in copied) == ["a", "b"]
    assert copied[1]["store_timestamp"] - copied[0]["store_timestamp"] >= 2


def test_a_csv_export_has_its_times_too(store):
    run("produce", "orders", "-q", stdin=b"a\nb\n")
    table = run("message", "export", "orders", "--as", "csv").raw
    assert run("produce", "copy", "--input", "csv", "--speed", "100", stdin=table).code == 0
    assert run("consume", "copy", "-e").lines == ["a", "b"]


def test_speed_needs_records_with_times(store):
    result = run("produce", "t", "--speed", "2", stdin=b"x\n")
    assert result.code == 2
    assert "--speed needs the times of stored messages" in result.err
    assert "--speed: 'x2' is not a speed" in run("produce", "t", "--speed", "x2", stdin=b"").err
    result = run("produce", "t", "--input", "jsonl", "--speed", "2", stdin=b'{"body":"x"}\n')
    assert "has no store_timestamp" in result.err
    assert "exclude each other" in run("produce", "t", "--rate", "3", "--speed", "2").err
