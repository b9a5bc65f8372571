"""``:from`` on the messages of a topic: times as the commands take them, and positions."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.messages import is_time
from rmqctl.console.program import typed
from rmqctl.errors import UsageProblem
from storage.format.message import Message
from storage.parse.times import parse_time
from tests.support.cli import run
from tests.support.console import drive, json_rows

NOON = 1_770_000_000_000
"""2026-02-02 02:40 UTC."""
TIMES = ("2026-02-02 02:41", "2026-02-02T02:41:00Z", "@1770000060000", "1770000060000")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Ten messages, one a minute from NOON on, and one of now."""
    store = tmp_path_factory.mktemp("from") / "s"
    run("store", "init", store)
    clock = [NOON]
    with EmbeddedBroker.open(store, clock=lambda: clock[0]) as broker:
        for number in range(10):
            clock[0] = NOON + number * 60_000
            broker.send(Message("orders", b"%d" % number), 0)
    run("produce", "orders", "-S", store, stdin=b"now\n")
    return store


@pytest.mark.parametrize("start", [*TIMES, "-1h", "today", "now", "3", "3:7", "-2", "+4", "end"])
def test_the_rows_are_those_of_the_command(stored, start):
    async def steps(console):
        await console.read()
        typed.carry_out(console.app, f"from {start}")
        await console.read()
        pane = console.app.pane
        assert pane.error is None
        option = "--from" if is_time(start) else "--offset"
        assert f"{option}={start}" in pane.command().replace("'", "")
        printed = json_rows(stored, pane.command())
        places = [(row["queue_id"], row["queue_offset"]) for row in printed]
        assert [(row.queue_id, row.queue_offset) for row in pane.table.shown] == places
        if start in TIMES:
            assert [row.body for row in pane.table.shown][:2] == ["1", "2"]

    drive(stored, steps, "messages", "orders", tz="UTC")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        *(("-1h", True), ("09:30", True), ("2026-01-31", True), ("yesterday 18:00", True)),
        *(("1770000060000", True), ("17700000", False), ("5:9", False), ("5:", False)),
        *((":5", False), ("5:end", False), ("-10", False), ("+10", False), ("@-1h", False)),
        *(("start", False), ("nonsense", True)),
    ],
)
def test_what_is_a_time_and_what_is_a_position(text, time):
    assert is_time(text) is time


@pytest.mark.parametrize("wrong", ["nonsense", "2026-13-01", "25:00", "9999999999999999"])
def test_a_wrong_time_has_the_sentence_of_the_command(stored, wrong):
    with pytest.raises(ValueError, match="time|would be"):
        parse_time(wrong, NOON)
    said = run("consume", "orders", f"--from={wrong}", "-e", "-S", stored).err

    async def steps(console):
        await console.read()
        before = console.app.place
        typed.carry_out(console.app, f"from {wrong}")
        assert console.app.place == before
        assert console.app.notice.startswith("--from: ")
        assert console.app.notice in said

    drive(stored, steps, "messages", "orders")


def test_a_wrong_position_is_said_on_the_screen_of_the_topic(stored):
    async def steps(console):
        await console.read()
        typed.carry_out(console.app, "from 9:3")
        assert console.app.notice.startswith("--offset: '9:3' is not a position")

    drive(stored, steps, "messages", "orders")


def test_a_time_in_the_future_is_a_note(stored):
    async def steps(console):
        await console.read()
        typed.carry_out(console.app, "from 2199-01-01")
        await console.until(lambda: "no message is that recent" in " ".join(all_notes(console)))

    drive(stored, steps, "messages", "orders")


def all_notes(console):
    return [note for pane in console.app.panes for note in pane.notices]


def test_without_a_time_the_last_messages_are_shown_again(stored):
    async def steps(console):
        await console.read()
        typed.carry_out(console.app, "from 3")
        await console.read()
        typed.carry_out(console.app, "from")
        await console.read()
        assert len(console.app.pane.table.shown) == 11

    drive(stored, steps, "messages", "orders")


def test_the_error_is_that_of_a_command_line():
    from rmqctl.console.looks.messages import position_of

    with pytest.raises(UsageProblem, match="--from: 'soon' is not a time"):
        position_of("soon", NOON, None, lambda sentence: None)
