"""A plan is about the rows that are marked, or a sentence says why there is none."""

import json

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.format.message import Message
from tests.rmqctl.console.test_changes import turn_on
from tests.rmqctl.console.test_changes_of_messages import carry_out
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import bury, give_back
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


def planned(console):
    """The queue offsets of a plan."""
    return [row.queue_offset for row in console.app.desk.sheet.pane.table.shown]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["R", "A"])
def test_marks_end_with_the_change_that_was_made_with_them(stocked, key):
    async def steps(console):
        app = console.app
        await turn_on(console)
        await console.press("tab", "space", key)
        if key == "R":
            await console.press("enter")
        await console.until("Type billing")
        assert planned(console) == [0]
        await carry_out(console)
        await console.press("escape", "ctrl+r")
        await console.until(lambda: app.pane.row() and app.pane.row().queue_offset != 0)
        assert app.pane.table.marked == set()
        await console.press("A")
        await console.until("Type billing")
        assert planned(console) == [app.pane.row().queue_offset]

    drive(stocked, steps, "dlq", "billing", size=(140, 24))


@pytest.mark.slow
def test_marks_stay_where_nothing_was_done(stocked):
    async def steps(console):
        app = console.app
        await turn_on(console)
        await console.press("tab", "space", "A")
        await console.until("Type billing")
        await console.press("escape")
        assert app.pane.table.marked == {(0,)}
        await console.press("A")
        await console.until("Type billing")
        run("dlq", "ack", "billing", "0", "--yes", "-S", stocked)
        await console.press("enter", "enter")
        await console.type("billing")
        await console.press("enter")
        await console.until(lambda: "nothing was changed" in app.desk.sheet.banner)
        assert app.pane.table.marked == {(0,)}

    drive(stocked, steps, "dlq", "billing", size=(140, 24))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["R", "A"])
def test_marked_letters_that_were_handled_meanwhile_are_left_out(stocked, key):
    sentence = "1 of the marked dead letters was handled meanwhile and is left out"

    async def steps(console):
        app = console.app
        await turn_on(console)
        await console.press("tab", "asterisk")
        assert app.pane.table.marked == {(0,), (2,)}
        app.paused = True
        assert run("dlq", "ack", "billing", "0", "--yes", "-S", stocked).code == 0
        await console.press(key)
        if key == "R":
            await console.press("enter")
        await console.until("Type billing")
        assert sentence in console.words()
        assert planned(console) == [2]
        verb = {"R": "redrive", "A": "ack"}[key]
        assert app.desk.sheet.command() == f"rmqctl dlq {verb} billing 2"
        await console.press("escape")
        assert run("dlq", "ack", "billing", "2", "--yes", "-S", stocked).code == 0
        await console.press(key)
        if key == "R":
            await console.press("enter")
        await console.until("all marked dead letters were handled meanwhile")
        assert not app.desk.sheet.plan.can_be_done

    drive(stocked, steps, "dlq", "billing", size=(140, 24))


@pytest.mark.slow
def test_the_summary_of_a_redrive_has_the_letters_that_were_handled_before(stocked):
    assert run("dlq", "ack", "billing", "0", "--yes", "-S", stocked).code == 0
    planned = run("dlq", "redrive", "billing", "0", "1", "--dry-run", "-S", stocked)
    assert "1 of them was handled before, and is sent all the same" in planned.err
    planned = run("dlq", "redrive", "billing", "1", "--dry-run", "-S", stocked)
    assert "handled before" not in planned.err


@pytest.mark.slow
def test_marks_of_retries_end_with_their_change_and_those_that_are_gone_are_called_so(stocked):
    with EmbeddedBroker.open(stocked) as broker:
        for number in range(3):
            sent = broker.send(Message("orders", b"again %d" % number))
            (one,) = broker.query_unique("orders", sent.msg_id)
            give_back(broker, "billing", one, level=18)

    async def steps(console):
        app = console.app
        await turn_on(console)
        await console.press("space", "D")
        await carry_out(console)
        await console.press("escape", "ctrl+r")
        await console.until(lambda: len(app.pane.table.shown) == 2)
        assert app.pane.table.marked == set()
        offset_msg_id = app.pane.row().offset_msg_id
        await console.press("space")
        run("retry", "dead", "billing", offset_msg_id, "--yes", "-S", stocked)
        await console.press("ctrl+r")
        await console.until(lambda: len(app.pane.table.shown) == 1)
        await console.press("N")
        assert said(app) == "1 of 1 marked rows are gone; * twice takes all marks off"
        await console.press("asterisk", "N")
        assert said(app) == "1 of 2 marked rows are gone; * takes all marks off"
        await console.press("asterisk", "N")
        await console.until("Type billing")

    drive(stocked, steps, "retries", "billing", size=(140, 24))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "title"), [(("dlq", "billing"), "LETTER"), (("messages", "orders"), "MESSAGE")]
)
def test_no_row_is_marked_in_a_pane_that_cannot_show_it(stocked, words, title):
    async def steps(console):
        app = console.app
        await console.read()
        while app.pane.spec.title != title:
            await console.press("tab")
        await console.until(lambda: app.pane.row() is not None)
        for key in ("space", "asterisk"):
            await console.press(key)
            assert app.pane.table.marked == set()
            assert app.notice == "this pane is no list: no row of it can be marked"

    drive(stocked, steps, *words, size=(160, 45))


@pytest.mark.slow
def test_marks_of_another_reason_are_not_called_gone(stocked):
    async def steps(console):
        app = console.app
        await console.read()
        await console.press("tab", "space", "tab", "j", "tab")
        assert app.pane.spec.title == "LETTERS"
        await console.read()
        await console.press("e")
        assert app.notice == (
            "1 of 1 marked rows are not shown (a filter, or the cursor of another pane?)"
        )
        await console.press("tab", "k", "tab")
        await console.read()
        await console.press("e")
        assert app.notice == ""
        assert app.prompt is not None

    drive(stocked, steps, "dlq", "billing", size=(100, 24))


@pytest.mark.slow
def test_marks_of_another_level_are_not_called_gone(stocked):
    with EmbeddedBroker.open(stocked) as broker:
        for level in (17, 18):
            for _ in range(2):
                broker.send(Message("mails", b"later", delay_time_level=level))

    async def steps(console):
        app = console.app
        await console.read()
        await console.press("tab", "asterisk")
        assert app.pane.spec.title == "MESSAGES"
        assert len(app.pane.table.marked) == 2
        await console.press("tab", "j", "tab", "e")
        assert app.notice == (
            "2 of 2 marked rows are not shown (a filter, or the cursor of another pane?)"
        )

    drive(stocked, steps, "agenda", size=(100, 40))
