"""The plan of an undo is about the change under the cursor, and names all of its groups."""

import pytest
from textual.events import Paste

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.look import Place
from storage.configs.progress import ProgressFile
from tests.rmqctl.console.test_changes import turn_on
from tests.rmqctl.console.test_plans_of_marked_rows import marked, said
from tests.support.cli import run
from tests.support.console import drive

NO_NUMBER = "this move is not in the journal and has no number: it cannot be undone"
GROUPS = ("billing", "mailer", "shipping")


@pytest.fixture
def stocked(store):
    """A topic that three groups have read, and a change of all three of them."""
    run("produce", "orders", "-Q", 0, stdin=b"one\ntwo\n")
    for group in GROUPS:
        run("consume", "orders", "-g", group, "-e")
    run("offset", "reset", *GROUPS, "-t", "orders:0", "--to-earliest", "--yes")
    return store


def offsets(store):
    """The offset of each group in queue 0."""
    rows = run("lag", "show", "--by", "queue", "-S", store, "-o", "json").json()
    found = {row["group"]: row["committed_offset"] for row in rows if row["queue_id"] == 0}
    return [found[group] for group in GROUPS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("history", "billing"), ("group", "billing"), ("audit",), ("change", "1")]
)
def test_a_change_of_several_groups_shows_them_and_takes_the_name_of_the_store(stocked, words):
    async def steps(console):
        app = console.app
        await turn_on(console)
        if words[0] == "group":
            await console.press("tab")
            assert app.pane.spec.title == "LAST CHANGES"
        await console.press("u")
        await console.until("Type s (the name of the store)")
        assert "group" in app.desk.sheet.pane.table.columns()
        assert all(group in console.text() for group in GROUPS)
        await console.press("enter", "enter")
        app.on_paste(Paste("billing"))
        await console.press("enter")
        assert "'billing' is not 's': nothing was changed" in console.text()
        assert offsets(stocked) == [0, 0, 0]
        for _ in "billing":
            await console.press("backspace")
        app.on_paste(Paste("s"))
        await console.press("enter")
        await console.until("Done (3 rows)")
        await console.press("u")
        await console.until("Type s (the name of the store)")

    drive(stocked, steps, *words, size=(140, 40))
    assert offsets(stocked) == [2, 2, 2]


@pytest.mark.slow
def test_a_move_that_is_not_in_the_journal_is_not_undone(stocked):
    run("consume", "orders", "-g", "late", "-e")
    with EmbeddedBroker.open(stocked) as broker:
        broker.progress.move("late", {("orders", 0): 1}, {"command": "offset reset"})
    ProgressFile(stocked).move({("orders@late", 0): 0})

    async def steps(console):
        app = console.app
        await console.read()
        numbers = [row.change_id for row in app.pane.table.shown]
        assert numbers == [2, None]
        await console.press("G", "u")
        assert said(app) == NO_NUMBER
        await marked(console, 1)
        await console.press("u")
        assert said(app) == NO_NUMBER
        await marked(console, 0)
        await console.press("u")
        assert said(app) == "2 rows are marked, and u plans one change"
        app.go(Place("groups"))
        await console.read()
        await console.press("u")
        assert said(app) == "rmqctl offset undo --last"

    drive(stocked, steps, "history", "late", size=(140, 40))
