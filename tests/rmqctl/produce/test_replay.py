"""``--speed``: messages with the times between them."""

import json

import pytest

from rmqctl.produce.parsers import Outgoing
from rmqctl.produce.replay import parse_speed, replayed
from rmqctl.produce.sources import Portion
from tests.support.cli import run

FIRST = 1_767_225_600_000
"""2026-01-01 UTC; the times of messages count from it."""


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
    messages = [Outgoing(b"x", store_timestamp=FIRST + time) for time in times]
    return Portion(None, messages, range(1, 1 + len(times)))


def sent(portions, speed):
    """The times, from the first, at which messages are handed on."""
    clock = Clock()
    at = []
    for one in replayed(iter(portions), speed, clock, clock.sleep):
        at += [(round(clock.now - 100, 6), m.store_timestamp - FIRST) for m in one.messages]
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
        if one.messages[0].store_timestamp == FIRST:
            clock.now += 1.5  # the first send takes long
    assert at == [0.0, 1.5, 2.0]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "has no store_timestamp, which --speed needs"),
        ("", "has no store_timestamp, which --speed needs"),
        (1_000, "its store_timestamp '1000' would be"),
        (7_289_654_400_000, "its store_timestamp '7289654400000' would be"),
        ("soon", "its store_timestamp 'soon' is not a time"),
        ("-1h", "its store_timestamp '-1h'"),
        (0, "its store_timestamp is 0: no message is that old"),
        (1.5, "its store_timestamp is 1.5, not a time"),
    ],
)
def test_a_record_without_a_time_is_named_and_others_go_on(given, reason):
    times = (FIRST, given, FIRST)
    messages = [Outgoing(b"%d" % n, store_timestamp=time) for n, time in enumerate(times)]
    first, last = replayed(iter([Portion(None, messages, range(7, 10))]), 1.0)
    assert f"line 8: {reason}" in str(first.invalid)
    assert ([m.body for m in first.messages], [*first.lines]) == ([b"0"], [7])
    assert ([m.body for m in last.messages], [*last.lines]) == ([b"2"], [9])
    assert last.invalid is None


@pytest.mark.parametrize("speed", [1e-9, 5e-324])
def test_a_wait_of_centuries_is_one_that_the_system_takes(speed):
    """time.sleep refuses more than 292 years."""
    clock = Clock()

    def sleep(seconds):
        assert seconds <= 2**63 / 1e9
        clock.sleep(seconds)
        if len(clock.slept) == 3:
            raise TimeoutError

    messages = [Outgoing(b"x", store_timestamp=FIRST + 60_000 * number) for number in range(2)]
    portions = replayed(iter([Portion(None, messages, range(1, 3))]), speed, clock, sleep)
    assert [message.body for message in next(portions).messages] == [b"x"]
    with pytest.raises(TimeoutError):
        next(portions)


@pytest.mark.parametrize(
    "times",
    [
        (1_767_225_600, 1_767_225_610),
        (1_767_225_600_000, "1767225610000"),
        (1_767_225_600_000_000, 1_767_225_610_000_000),
        (1_767_225_600_000_000_000, 1_767_225_610_000_000_000),
        ("2026-01-01T00:00:00Z", "2026-01-01T01:00:10+01:00"),
    ],
    ids=["s", "ms", "us", "ns", "iso"],
)
def test_times_between_messages_are_read_in_any_form_of_a_time(times):
    clock = Clock()
    messages = [Outgoing(b"x", store_timestamp=time) for time in times]
    list(replayed(iter([Portion(None, messages, range(1, 3))]), 1.0, clock, clock.sleep))
    assert clock.slept == [10.0]


@pytest.mark.parametrize(
    "command",
    [
        ["produce", "t", "--input", "jsonl"],
        ["message", "import", "-", "-t", "t"],
    ],
)
def test_a_record_with_no_time_is_left_out_alone(store, command):
    lines = b"".join(
        b'{"body":"%d","store_timestamp":%s}\n' % (n, time)
        for n, time in enumerate([b"1767225600", b"17", b"1767225600"])
    )
    result = run(*command, "--speed", "1", stdin=lines)
    assert (result.code, "line 2: its store_timestamp '17' would be" in result.err) == (8, True)
    assert run("consume", "t", "-e").lines == ["0"]
    result = run(*command, "--speed", "1", "--skip-invalid", stdin=lines)
    assert (result.code, "line 2: its store_timestamp" in result.err) == (8, True)
    assert run("consume", "t", "-e").lines == ["0", "0", "2"]


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
