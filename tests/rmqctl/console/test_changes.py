"""Changes in the console: off at first, a plan, a typed name, and the way back."""

import shlex
import shutil
from typing import Any

import pytest
from textual.events import Paste

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.admin.offsets.rows import DoneMove
from rmqctl.console.plans.sheet import Stage
from rmqctl.console.shapes import HERE, TARGET
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.format.message import Message
from storage.parse.times import format_time
from tests.rmqctl.console.test_rows import stable, without_now
from tests.support.cli import run
from tests.support.console import drive, terminal
from tests.support.java_lock import java_lock


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


@pytest.mark.feature(161)
@pytest.mark.slow
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

    drive(stocked, steps, "groups")
    assert committed(stocked) == before


@pytest.mark.feature(156, 158)
@pytest.mark.slow
def test_a_reset_from_the_key_to_the_result_and_back(stocked):
    before = committed(stocked)

    async def steps(console):
        await turn_on(console)
        await plan_a_reset(console, "earliest")
        text = console.text()
        assert "= rmqctl offset reset billing -t orders --to-earliest" in text

        assert "4 queues: 4 back, 30 messages" in text
        assert "4 rows, read at" in text
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

    drive(stocked, steps, "groups")
    assert committed(stocked) == before
    assert {row["command"] for row in journal(stocked)} == {"offset reset", "offset undo"}


@pytest.mark.slow
def test_the_result_and_the_audit_line_are_those_of_the_command(stocked, tmp_path):
    twin = tmp_path / "twin"
    shutil.copytree(stocked, twin)
    found: list[Any] = []

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

    drive(stocked, steps, "groups")
    command, rows = found
    done = run(*shlex.split(command)[1:], "--yes", "-S", twin, "-o", "json")
    assert done.code == 0, done.err
    mine, its = without_now(stable(DoneMove, rows)), without_now(done.json())
    for row in (*mine, *its):
        del row["age_new_ms"]
    assert mine == its
    assert journal(stocked) == journal(twin)
    assert journal(twin)[0]["reason"] == "why"


@pytest.mark.slow
def test_a_plan_that_a_second_process_made_stale_is_made_anew(stocked):
    async def steps(console):
        await turn_on(console)
        await plan_a_reset(console, "earliest")
        await console.press("enter")
        await console.type("why")
        await console.press("enter")
        await console.type("billing")
        moved = run(
            *("offset", "reset", "billing", "-t", "orders:0", "--to-offset", 5, "--yes"),
            *("-S", stocked),
        )
        assert moved.code == 0, moved.err
        await console.press("enter")
        await console.until("The plan was made anew")
        assert "nothing was changed: " in console.words()
        assert committed(stocked)[0] == 5
        await console.press("enter")
        assert console.app.desk.sheet.name.text == ""
        assert console.app.desk.sheet.reason.text == "why"
        await console.press("enter", "enter")
        assert "'' is not 'billing'" in console.text()

    drive(stocked, steps, "groups")
    assert {row["change_id"] for row in journal(stocked)} == {1}


@pytest.mark.slow
def test_beside_a_java_broker_the_refusal_stands_in_the_plan(stocked):
    before = committed(stocked)

    async def steps(console):
        await turn_on(console)
        await console.press("r", "enter")
        await console.type("earliest")
        await console.press("enter")
        await console.until(lambda: "REFUSED:" in console.words())
        assert "Java broker" in console.words()
        await console.press("enter", "enter")
        assert console.app.desk.sheet.stage is Stage.PLAN

    with java_lock(stocked):
        drive(stocked, steps, "groups")
    assert committed(stocked) == before


@pytest.mark.slow
def test_a_java_broker_that_starts_after_the_plan_stops_it(stocked):
    before = committed(stocked)

    async def steps(console):
        await turn_on(console)
        await plan_a_reset(console, "earliest")
        await console.press("enter", "enter")
        await console.type("billing")
        with java_lock(stocked):
            await console.press("enter")
            await console.until(lambda: "REFUSED:" in console.words())
        assert "nothing was changed: " in console.words()

    drive(stocked, steps, "groups")
    assert committed(stocked) == before
    assert journal(stocked) == []


@pytest.mark.slow
def test_a_setting_forbids_changes(stocked, own_home):
    (own_home / "rmqctl.toml").write_text(
        f'context = "prod"\n[contexts.prod]\nstore = "{stocked}"\nconsole_write = "never"\n'
    )

    async def steps(console):
        await console.read()
        await console.type(":write s")
        await console.press("enter")
        assert "console_write is never" in console.text()
        assert "READ ONLY" in console.text()

    drive(stocked, steps, "groups")
    refused = run("console", "--write")
    assert refused.code == 7
    assert "--write: changes are off: console_write is never (context prod in " in refused.err


@pytest.mark.slow
def test_pasted_text_must_be_exactly_the_name(stocked):
    before = committed(stocked)

    async def steps(console):
        await turn_on(console)
        await plan_a_reset(console, "earliest")
        await console.press("enter", "enter")
        console.app.on_paste(Paste("billing "))
        await console.press("enter")
        assert "'billing ' is not 'billing'" in console.text()
        await console.press("ctrl+u")
        console.app.on_paste(Paste("Billing\nbilling\n"))
        await console.press("enter")
        assert "'Billing' is not 'billing'" in console.text()

    drive(stocked, steps, "groups")
    assert committed(stocked) == before


@pytest.mark.feature(157)
@pytest.mark.slow
def test_a_reset_to_a_time_shows_when_the_messages_were_stored(tmp_path):
    store = tmp_path / "s"
    begun = now_ms() // 60_000 * 60_000 - 45 * 60_000
    clock = [begun]
    create_store(store, SMALL_STORE)
    with EmbeddedBroker.open(store, clock=lambda: clock[0]) as broker:
        for minute in range(30):
            clock[0] = begun + minute * 60_000
            for _ in range(minute % 3):
                broker.send(Message("orders", b"x"))
    run("consume", "orders", "-g", "billing", "-e", "-c", "5", "-S", store)
    target = format_time(begun + 20 * 60_000, None, iso=True)

    async def steps(console):
        await turn_on(console)
        await plan_a_reset(console, target)
        found = console.app.desk.sheet.plan.picture
        assert found.step_ms == 60_000
        cell = found.cell_of(begun)
        assert found.counts[cell : cell + 30] == tuple(minute % 3 for minute in range(30))
        assert sum(found.counts) == 30
        assert found.cell_of(found.target_ms) == cell + 20
        shown = console.text()
        assert "messages stored in each 1m (most 2)" in shown
        marks = next(line for line in console.lines() if TARGET in line and "target" not in line)
        assert marks.index(TARGET) == 2 + cell + 20
        assert marks.index(HERE) == 2 + found.cell_of(found.here_ms)
        assert "orders" in shown.split("QUEUE_ID")[1]

    drive(store, steps, "groups", size=(80, 24))


@pytest.mark.slow
def test_the_fields_of_a_plan_are_seen_on_the_smallest_screen(stocked):
    async def steps(console):
        await turn_on(console)
        await plan_a_reset(console, "earliest")
        lines = console.lines()
        assert len(lines) == 15
        assert any(line.startswith(" reason:") for line in lines)
        assert "lines above are not shown" in console.text()
        assert "> orders" in console.text()

    drive(stocked, steps, "groups", size=(60, 15))


@pytest.mark.slow
def test_on_a_terminal_a_change_is_done_before_the_console_ends(stocked):
    with terminal(stocked, "groups", "--write") as console:
        console.until("billing")
        console.until("CHANGES ON")
        console.send("r\r")
        console.until("a time (13:20")
        console.send("earliest\r")
        console.until("Type billing")
        console.send("\rwhy\rbilling\rq")
        assert console.ended() == 0
    assert set(committed(stocked).values()) == {0}
    assert journal(stocked)[0]["reason"] == "why"
