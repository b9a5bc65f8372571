"""Changes in the console: off at first, a plan, a typed name, and the way back."""

import shlex
import shutil

import pytest

from rmqctl.admin.offsets.rows import DoneMove
from tests.rmqctl.console.test_rows import stable, without_now
from tests.support.cli import run
from tests.support.console import drive


@pytest.fixture
def stocked(store):
    """A topic with 30 messages of which a group has read all."""
    run("produce", "orders", stdin=b"".join(b"order %d\n" % n for n in range(30)))
    run("consume", "orders", "-g", "billing", "-e")
    return store


def committed(store):
    """The offsets of the group, by queue."""
    rows = run("lag", "show", "billing", "--by", "queue", "-S", store, "-o", "json").json()
    return {row["queue_id"]: row["committed_offset"] for row in rows}


def journal(store):
    """The entries of the journal, without their times."""
    rows = run("audit", "list", "-S", store, "-o", "json").json()
    return [{k: v for k, v in row.items() if k != "at_timestamp"} for row in rows]


async def turn_on(console):
    """Read the screen and turn changes on."""
    await console.read()
    await console.type(f":write {console.app.cli.store.path.name}")
    await console.press("enter")
    assert "CHANGES ON" in console.text()


async def plan_a_reset(console, to):
    """Open the plan of a reset of the row under the cursor."""
    await console.press("r", "enter")
    await console.type(to)
    await console.press("enter")
    await console.until("Type billing")


def test_it_opens_read_only_and_a_key_says_the_command(stocked):
    before = committed(stocked)

    async def steps(console):
        await console.read()
        assert "READ ONLY" in console.text()
        assert "reset... (:write)" in console.text()
        await console.press("r")
        assert "= rmqctl offset reset billing -t orders --to-datetime TIME" in console.text()
        assert "read only (:write s)" in console.text()
        await console.type(":write elsewhere")
        await console.press("enter")
        assert "'elsewhere' is not the store's name" in console.text()
        await console.press("r")
        assert console.app.desk.sheet is None
        await console.press("D")
        assert "= rmqctl group delete billing" in console.text()

    drive(stocked, steps)
    assert committed(stocked) == before


def test_a_reset_from_the_key_to_the_result_and_back(stocked):
    before = committed(stocked)

    async def steps(console):
        await turn_on(console)
        await plan_a_reset(console, "earliest")
        text = console.text()
        assert "= rmqctl offset reset billing -t orders --to-earliest" in text

        assert "4 queues: 4 back, 30 messages" in text
        assert "Read at" in text
        for _ in range(5):
            await console.press("enter")
        assert "is not 'billing': nothing was changed" in console.text()
        await console.type("bil")
        await console.press("enter")
        assert "'bil' is not 'billing'" in console.text()
        assert committed(stocked) == before
        await console.press("escape")
        await console.type("replay #412")
        await console.press("enter")
        await console.type("billing")
        await console.press("enter")
        await console.until("this is change 1")
        assert set(committed(stocked).values()) == {0}
        assert console.app.desk.sheet.count == len(before)
        await console.press("u")
        await console.until("Type billing")
        assert "= rmqctl offset undo 1" in console.text()
        await console.press("enter", "enter")
        await console.type("billing")
        await console.press("enter")
        await console.until("this is change 2")

    drive(stocked, steps)
    assert committed(stocked) == before
    assert {row["command"] for row in journal(stocked)} == {"offset reset", "offset undo"}


def test_the_result_and_the_audit_line_are_those_of_the_command(stocked, tmp_path):
    twin = tmp_path / "twin"
    shutil.copytree(stocked, twin)
    found = []

    async def steps(console):
        await turn_on(console)
        await plan_a_reset(console, "offset 3")
        await console.press("enter")
        await console.type("why")
        await console.press("enter")
        await console.type("billing")
        await console.press("enter")
        await console.until("this is change 1")
        found.append(console.app.desk.sheet.command())
        found.append(console.app.desk.sheet.pane.table.shown)

    drive(stocked, steps)
    command, rows = found
    done = run(*shlex.split(command)[1:], "--yes", "-S", twin, "-o", "json")
    assert done.code == 0, done.err
    mine, its = without_now(stable(DoneMove, rows)), without_now(done.json())
    for row in (*mine, *its):
        del row["age_new_ms"]
    assert mine == its
    assert journal(stocked) == journal(twin)
    assert journal(twin)[0]["reason"] == "why"
