"""A plan is about the rows that are marked, or a sentence says why there is none."""

import json

import pytest

from storage.format.message import Message
from tests.rmqctl.console.test_changes import turn_on
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import bury
from tests.support.hand_made import TINY, HandMade


@pytest.fixture
def stocked(store):
    """Groups with offsets of two topics, and dead letters of two of them."""
    for topic in ("orders", "mails"):
        run("produce", topic, stdin=b"one\ntwo\n")
    for group in ("billing", "mailer", "shipping"):
        run("consume", "orders", "-g", group, "-e")
    run("consume", "mails", "-g", "billing", "-e")
    letters = [Message("orders", b"%d" % n, keys=f"k{n}") for n in range(3)]
    for group in ("billing", "mailer"):
        bury(store, group, letters, ["timeout", "no stock", "timeout"])
    return store


async def marked(console, *places):
    """Mark the rows at these places of a list, and move the cursor to the last row."""
    console.app.pane.move_to_end(last=False)
    at = 0
    for place in places:
        await console.press(*["j"] * (place - at), "space")
        at = min(place + 1, len(console.app.pane.table.shown) - 1)
    await console.press("G")


def said(app):
    """The command that a key would have done, or why there is none."""
    return app.desk.command or app.notice


@pytest.mark.slow
@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        ((0,), "rmqctl offset reset billing -t mails --to-datetime TIME"),
        ((0, 1), "rmqctl offset reset billing -t mails -t orders --to-datetime TIME"),
        ((1, 2), "2 rows are marked, and r plans one group"),
    ],
)
def test_a_reset_is_of_the_marked_group(stocked, places, sentence):
    async def steps(console):
        await console.read()
        await console.type(":sort topic")
        await console.press("enter")
        await console.type(":sort group")
        await console.press("enter")
        rows = [(row.group, row.topic) for row in console.app.pane.table.shown]
        assert sorted(rows)[:2] == [("billing", "mails"), ("billing", "orders")]
        order = sorted(range(len(rows)), key=lambda n: rows[n])
        await marked(console, *sorted(order[place] for place in places))
        await console.press("r")
        assert said(console.app) == sentence

    drive(stocked, steps, "groups")


@pytest.mark.slow
@pytest.mark.parametrize("key", ["R", "A"])
def test_dead_letters_are_those_of_the_marked_group(stocked, key):
    verb = {"R": "redrive", "A": "ack"}[key]

    async def steps(console):
        await console.read()
        await console.type(":sort group")
        await console.press("enter")
        await marked(console, 0)
        assert console.app.pane.row().group == "mailer"
        await console.press(key)
        assert said(console.app) == f"rmqctl dlq {verb} billing --all"
        await marked(console, 1)
        await console.press(key)
        assert said(console.app) == f"2 rows are marked, and {key} plans one group"

    drive(stocked, steps, "dlqs")


@pytest.mark.slow
def test_dead_letters_are_those_of_the_marked_reason(stocked):
    async def steps(console):
        app = console.app
        await turn_on(console)
        assert [row.count for row in app.pane.table.shown] == [2, 1]
        await marked(console, 0)
        assert app.pane.row().value.endswith("no stock")
        await console.press("A")
        await console.until("Type billing")
        assert sorted(row.queue_offset for row in app.desk.sheet.pane.table.shown) == [0, 2]
        await console.press("escape")
        assert app.desk.sheet is None
        await marked(console, 1)
        await console.press("R")
        assert said(app) == "2 rows are marked, and R plans one reason"

    drive(stocked, steps, "dlq", "billing", size=(140, 24))


@pytest.mark.slow
def test_letters_that_are_marked_are_not_forgotten_on_a_reason(stocked):
    async def steps(console):
        await console.read()
        await console.press("tab", "space", "tab")
        assert console.app.active == 0
        for key in "RA":
            await console.press(key)
            assert said(console.app) == (
                f"1 row is marked in LETTERS, and {key} plans what the cursor is on; "
                "tab goes to LETTERS"
            )
        await console.press("tab", "R")
        assert said(console.app) == "rmqctl dlq redrive billing 0"

    drive(stocked, steps, "dlq", "billing", size=(140, 24))


@pytest.mark.slow
def test_the_change_that_is_marked_is_undone(stocked):
    for to in ("--to-earliest", "--to-latest"):
        run("offset", "reset", "billing", "-t", "orders", to, "--yes")

    async def steps(console):
        app = console.app
        await console.read()
        await console.type(":where command = 'offset reset'")
        await console.press("enter")
        rows = app.pane.table.shown
        newest, oldest = rows[0].change_id, rows[-1].change_id
        assert newest > oldest
        await marked(console, 0)
        await console.press("u")
        assert said(app) == f"rmqctl offset undo {newest}"
        await console.press("space", "u")
        assert said(app) == "2 rows are marked, and u plans one change"
        app.go(app.place._replace(screen="groups"))
        await console.read()
        await marked(console, 0)
        await console.press("u")
        assert said(app) == "1 row is marked, and u plans to undo the last change"
        await console.press("asterisk", "D")
        assert said(app).endswith("rows are marked, and D plans one group")

    drive(stocked, steps, "audit", size=(140, 24))


@pytest.mark.slow
def test_a_reset_of_a_light_topic_names_it_as_the_command_takes_it(tmp_path):
    made = HandMade(TINY)
    made.put("%LMQ%room", 0)
    made.put("%LMQ%room:0", 0)
    store = made.write(tmp_path)
    (store / "config").mkdir()
    table = {"offsetTable": {"%LMQ%room@g": {"0": 7}}}
    (store / "config" / "consumerOffset.json").write_text(json.dumps(table))
    advice = run("group", "why", "g", "-S", store, "-o", "json").json()["advice"]
    assert "rmqctl offset reset -g g -t %LMQ%room --to-earliest" in advice

    async def steps(console):
        await console.read()
        assert console.app.pane.row().topic == "%LMQ%room"
        await console.press("r")
        assert said(console.app) == "rmqctl offset reset g -t %LMQ%room --to-datetime TIME"

    drive(store, steps, "group", "g")
