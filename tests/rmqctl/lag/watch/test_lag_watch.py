"""``lag watch``: line by line, in place on a terminal, until drained, until Ctrl-C."""

import logging
import os
import pty
import re
import select
import signal
import sys
import threading
import time

import pyte
import pytest

from analytics.lag.selection import Choice
from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.lag.unknown import NO_PROGRESS
from rmqctl.admin.lag.watch_rows import WatchedRateRow, WatchedRow
from rmqctl.admin.lag.watcher import Left, Watcher, left, needed
from rmqctl.cli.context import Cli
from rmqctl.cli.log_records import LineHandler
from rmqctl.lag.watch.watch import Screen
from rmqctl.output.cells import cells_of
from rmqctl.output.last_line import LAST_LINE
from rmqctl.output.view import Format, View
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.support.cli import run, start

T = 1_700_000_000_000


@pytest.fixture
def end(store):
    """A group with two unread messages."""
    run("produce", "t", "--queue", 0, stdin=b"a\nb\nc\n")
    run("consume", "t", "-g", "g", "-e", "-c", 1, "-Q", 0)
    return store


def test_without_any_progress_it_is_said_once(store):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    said: list[str] = []
    with (
        EmbeddedBroker.open(store) as broker,
        EmbeddedBroker.open(store, read_only=True) as reader,
    ):
        watcher = Watcher(reader.view, reader, Choice(), T, said.append)
        assert watcher.rows(watcher.look(T), with_rates=False) == []
        watcher.look(T + 1_000)
        assert said == [NO_PROGRESS]
        broker.update_consumer_offsets("g", [OffsetCommit("t", 0, 0)])
        assert len(watcher.rows(watcher.look(T + 2_000), with_rates=False)) == 1
    assert said == [NO_PROGRESS]


def test_a_queue_that_is_not_read_is_named_once_as_long_as_it_is_not(end):
    said: list[str] = []
    with (
        EmbeddedBroker.open(end) as broker,
        EmbeddedBroker.open(end, read_only=True) as reader,
    ):
        watcher = Watcher(reader.view, reader, Choice(), T, said.append)
        for number, queues in enumerate((0, 0, 8, 0)):
            broker.update_topic(TopicConfig("t", queues, 8))
            broker.send_column("t", [b"m"], [0])
            watcher.look(T + number * 1_000)
    assert [words.split(" (")[1].split(")")[0] for words in said if "is not read" in words] == [
        "3 messages unread",
        "6 messages unread",
    ]
    assert len(said) == 2


@pytest.mark.feature(50, 51, 54, 60)
def test_looks_give_rates_a_forecast_and_a_word_without_any_sample(store):
    """What comes in and goes out between looks ten seconds apart, by a clock of the test's."""
    with (
        EmbeddedBroker.open(store, clock=lambda: T) as broker,
        EmbeddedBroker.open(store, read_only=True) as reader,
    ):

        def step(stored, committed):
            for _ in range(stored):
                broker.send(Message("t", b"x"), 0)
            broker.update_consumer_offsets("g", [OffsetCommit("t", 0, committed)])

        step(200, 0)
        watcher = Watcher(reader.view, reader, Choice(), T + 100_000)
        rows = []
        for number in range(5):
            seen = watcher.look(T + 100_000 + 10_000 * number)
            rows += watcher.rows(seen, with_rates=True)
            assert left(seen) is Left.SOME
            step(10, 30 * (number + 1))
    assert [row.change for row in rows] == [None, -20, -20, -20, -20]
    timed = [row for row in rows if isinstance(row, WatchedRateRow)]
    rates = [(row.rate_in, row.rate_out, row.drain_ms) for row in timed]
    assert [rate[1:] for rate in rates[:2]] == [(None, None)] * 2
    assert rates[2:] == [(1.0, 3.0, 80_000), (1.0, 3.0, 70_000), (1.0, 3.0, 60_000)]
    assert rows[-1].status == "OK"


@pytest.mark.feature(51)
def test_the_forecast_says_how_many_members_it_would_take():
    assert needed(2, 10.0, 4.0) == 5
    assert needed(2, 4.0, 4.0) == 2
    assert needed(3, 1.0, 30.0) == 1
    assert needed(0, 10.0, 4.0) is needed(2, 10.0, 0.0) is needed(2, None, 1.0) is None


@pytest.mark.slow
def test_beside_a_group_that_reads_what_was_just_stored_no_lag_is_negative_or_unknown(store):
    with (
        EmbeddedBroker.open(store) as broker,
        EmbeddedBroker.open(store, read_only=True) as reader,
    ):
        done = threading.Event()

        def serve():
            offset = 0
            while not done.is_set():
                broker.send(Message("t", b"x"), 0)
                offset += 1
                broker.update_consumer_offsets("g", [OffsetCommit("t", 0, offset)])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            found: set[int] = set()
            looks = 0
            while len(found) < 20 and looks < 5000:
                for group_lag in Watcher(reader.view, reader, Choice(), T).look(T).group_lags:
                    what = group_lag.queues[0].unread
                    assert what.lag is not None
                    assert what.lag >= 0
                    assert what.committed_offset is not None
                    found.add(what.max_offset)
                looks += 1
        finally:
            done.set()
            thread.join()
    assert len(found) == 20


@pytest.mark.slow
def test_it_ends_when_the_group_is_through(end):
    with start("lag", "watch", "--until-drained", "-i", "100ms", "-o", "jsonl") as watching:
        assert b'"lag":2' in watching.stdout.readline()
        run("consume", "t", "-g", "g", "-e")
        out, err = watching.communicate(timeout=60)
    assert (watching.returncode, err) == (0, b"")
    assert b'"lag":0' in out.splitlines()[-1]


@pytest.mark.feature(60)
@pytest.mark.slow
def test_on_a_terminal_each_look_takes_the_place_of_the_one_before(end):
    main, terminal = pty.openpty()
    env = {"TERM": "xterm", "COLUMNS": "120", "LINES": "20"}
    watching = start(
        *("lag", "watch", "-i", "100ms", "--color", "never"),
        env=env,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    shown = read_until(main, lambda text: text.count("AT (UTC") >= 3)
    watching.send_signal(signal.SIGINT)
    assert watching.wait(60) == 130
    frames = re.split(r"\x1b\[2F", shown)
    assert len(frames) >= 3
    for frame in frames[:-1]:
        head, row = re.sub(r"\x1b\[[KJ]", "", frame).split("\r\n")[:2]
        assert re.match(r"AT \(UTC\S*\) +GROUP +TOPIC +LAG ", head)
        assert row.split()[2:5] == ["g", "t", "2"]
    os.close(main)


def read_until(descriptor, seen, seconds=60.0):
    """What comes from a terminal until a condition holds."""
    text, deadline = "", time.monotonic() + seconds
    while not seen(text):
        assert select.select([descriptor], [], [], deadline - time.monotonic())[0], text
        text += os.read(descriptor, 65536).decode()
    return text


class Written:
    """Takes what is printed."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.feature(60)
@pytest.mark.parametrize("columns", [20, 40, 70, 200])
@pytest.mark.parametrize("groups", [1, 3, 50])
def test_a_small_terminal_is_not_left_upwards(columns, groups, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", "12")
    cli, out = Cli({"TERM": "xterm"}), Written()
    vars(cli).update(view=View(Format.TABLE, terminal=True, color=True), out=out)
    screen = Screen(cli, WatchedRow)
    rows = [
        WatchedRow(T, f"group-{number}", "\u4e3b\u9898" * 9, number, None, 5, "OK", 0, 0)
        for number in range(groups)
    ]
    taken: list[int] = []
    for _ in range(3):
        out.text = ""
        screen.show(rows)
        up = re.match(r"\x1b\[(\d+)F", out.text)
        assert (int(up[1]) if up else 0) == (taken[-1] if taken else 0)
        lines = re.sub(r"\x1b\[[\d;]*[mKJF]", "", out.text).splitlines()
        taken.append(sum(max(1, -(-cells_of(line) // columns)) for line in lines))
        assert taken[-1] <= 11
        assert lines[-1].startswith("... ") or f"group-{groups - 1}" in "".join(lines[-4:])


class OneTerminal(Written):
    """A terminal that takes what is printed on both outputs."""

    def __init__(self, columns, lines):
        super().__init__()
        self._screen = pyte.HistoryScreen(columns, lines, history=100)
        self._screen.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self._screen)

    def write(self, text):
        super().write(text)
        self._stream.feed(text)

    def lines(self):
        """All lines since the begin, those that were scrolled out too."""
        above = ["".join(row[n].data for n in range(40)) for row in self._screen.history.top]
        return [line.rstrip() for line in (*above, *self._screen.display) if line.strip()]


@pytest.mark.parametrize("height", [4, 24])
@pytest.mark.parametrize("by", ["warning", "log record", "json"])
def test_a_message_of_a_later_look_stays_above_the_table(by, height, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", str(height))
    terminal = OneTerminal(40, height)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(LAST_LINE, "writes_json", lambda: by == "json")
    cli = Cli({"TERM": "xterm"})
    view = View(Format.TABLE, terminal=True, columns=("group", "lag"))
    vars(cli).update(view=view, out=terminal)
    screen = Screen(cli, WatchedRow)
    log = logging.Logger("test")
    log.addHandler(LineHandler(tracebacks=False))
    say = log.warning if by == "log record" else cli.warn
    with screen.below_messages():
        for number in range(4):
            if number in (0, 2):
                say(f"{'long ' * 12}{number}")
            rows = [WatchedRow(T, f"g{n}", "t", number, None, 5, "OK", 0, 0) for n in range(2)]
            screen.show(rows)
    say("the end")
    text = "".join(terminal.lines())
    assert [line.split() for line in terminal.lines() if line.startswith(("g0", "g1"))] == [
        ["g0", "3"],
        ["g1", "3"],
    ]
    assert text.count("GROUP") == 1
    places = [text.index(word) for word in ("long 0", "long 2", "GROUP", "g1", "the end")]
    assert places == sorted(places)


@pytest.mark.feature(60)
@pytest.mark.slow
def test_elsewhere_each_look_is_printed_below_the_one_before(end):
    with start("lag", "watch", "-i", "100ms") as watching:
        lines = [watching.stdout.readline().decode().split("\t") for _ in range(4)]
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert lines[0][:2] == ["at_timestamp", "group"]
    assert [line[1:4] for line in lines[1:]] == [["g", "t", "2"]] * 3


@pytest.mark.slow
def test_sorted_looks_are_sorted_one_by_one(end):
    run("consume", "t", "-g", "h", "-e", "-c", 2, "-Q", 0)
    with start("lag", "watch", "-i", "100ms", "--sort", "-lag", "-o", "csv") as watching:
        lines = [watching.stdout.readline().decode().split(",") for _ in range(5)]
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    assert [line[1] for line in lines] == ["group", "g", "h", "g", "h"]


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["nobody"], 3, "group nobody has no progress"),
        (["-i", "1ms"], 2, "--interval: '1ms' is less than 100ms"),
        (["-i", "soon"], 2, "'soon' is not a duration"),
        (["--until-drained", "--limit", "1"], 2, "--limit may end it earlier"),
        (["--until-drained", "--where", "group = g"], 2, "name the groups instead"),
    ],
)
def test_what_can_not_be_watched_is_one_sentence(end, args, code, sentence):
    result = run("lag", "watch", *args)
    assert (result.code, result.err.count("\n")) == (code, 1)
    assert sentence in result.err


@pytest.mark.slow
def test_a_limit_ends_what_waits_for_nothing(end):
    result = run("lag", "watch", "-i", "100ms", "-o", "jsonl", "--limit", 2)
    assert (result.code, len(result.lines)) == (0, 2)


@pytest.mark.parametrize("more", [("-o", "jsonl"), ("-o", "table"), ("-o", "csv", "--sort", "lag")])
def test_a_limit_of_no_rows_ends_it_at_once(end, more):
    result = run("lag", "watch", "-i", "100ms", "--limit", 0, "--timeout", "20s", *more)
    assert result.code == 0, result.err
    assert b'"g"' not in result.raw


@pytest.mark.parametrize("more", [("-o", "table"), ("-o", "csv", "--sort", "-lag")])
def test_a_limit_is_of_each_reading_where_readings_are_printed_one_by_one(end, more):
    run("consume", "t", "-g", "h", "-e", "-c", 2, "-Q", 0)
    words = ("--limit", 1, "--no-headers", "--columns", "group", *more)
    with start("lag", "watch", "-i", "100ms", *words) as watching:
        lines = [watching.stdout.readline().split() for _ in range(3)]
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    assert lines == [[b"g"]] * 3
    shown = run("lag", "watch", "--help", "--all").out
    assert "--limit N is N rows of each reading" in " ".join(shown.split())


def test_a_time_limit_ends_it(end):
    assert run("lag", "watch", "--timeout", "300ms", "-i", "100ms").code == 124
