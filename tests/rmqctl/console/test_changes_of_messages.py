"""Changes of dead letters, retries and the store in the console, beside those of the commands."""

import errno
import os
import re
import shlex
import shutil
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.drawing import Role
from rmqctl.console.looks.look import Place
from rmqctl.console.plans.sheet import Stage
from storage.configs.redrive_runs import Receipts
from storage.format.message import Message
from tests.rmqctl.console.test_changes import journal, turn_on
from tests.rmqctl.console.test_rows import stable
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import bury, give_back

NEW = {
    "new_queue_id",
    "new_queue_offset",
    "new_msg_id",
    "redriven_timestamp",
    "run",
    "path",
    "at_timestamp",
    "queue_offset",
}
"""Fields that differ between two runs of the same change."""


@pytest.fixture
def stocked(store):
    """A group with three dead letters of two reasons, and two retries that wait."""
    messages = [Message("orders", b"%d" % n, keys=f"k{n}") for n in range(3)]
    bury(store, "billing", messages, ["timeout", "no stock", "timeout"])
    with EmbeddedBroker.open(store) as broker:
        for number in range(2):
            sent = broker.send(Message("orders", b"again %d" % number))
            (stored,) = broker.query_unique("orders", sent.msg_id)
            give_back(broker, "billing", stored, level=18)
    return store


async def carry_out(console, name="billing"):
    """Type reason and name below a plan."""
    await console.until(f"Type {name}")
    await console.press("enter")
    await console.type("why")
    await console.press("enter")
    await console.type(name)
    await console.press("enter")
    await console.until("Done (")


def compared(store, twin, place, keys, name="billing", size=(80, 24)):
    """Do a change in the console, and by the command of its line in a copy of the store."""
    shutil.copytree(store, twin)
    found: list[Any] = []

    async def steps(console):
        await turn_on(console)
        for key in keys:
            await console.press(*key)
        await carry_out(console, name)
        sheet = console.app.desk.sheet
        found.extend((sheet.command(), sheet.pane.look.row_type, sheet.pane.table.shown))

    drive(store, steps, *place, size=size)
    command, row_type, rows = found
    done = run(*shlex.split(command)[1:], "--yes", "-S", twin, "-o", "json")
    assert done.code == 0, done.err
    assert plain_rows(stable(row_type, rows)) == plain_rows(done.json())
    assert plain_journal(store) == plain_journal(twin)
    return command


def plain_rows(rows):
    return [{name: value for name, value in row.items() if name not in NEW} for row in rows]


def plain_journal(store):
    """The entries without the names of runs."""
    return [{**row, "new": None} if row["what"] == "redrive" else row for row in journal(store)]


@pytest.mark.slow
def test_dead_letters_that_are_marked_are_sent_again(stocked, tmp_path):
    keys = [
        ("slash", *"timeout", "enter"),
        ("tab",),
        ("slash", *"timeout", "enter", "asterisk"),
        ("R", "enter"),
    ]
    command = compared(stocked, tmp_path / "twin", ("dlq", "billing"), keys)
    assert command == "rmqctl dlq redrive billing 0 2 --reason why"
    left = run("dlq", "browse", "billing", "-S", stocked, "-o", "json").json()
    assert [row["queue_offset"] for row in left] == [1]


@pytest.mark.slow
def test_a_redrive_with_a_rate_is_that_of_the_command(stocked, tmp_path):
    keys = [("R",), ("space", *"50", "slash", "s"), ("enter",)]
    command = compared(stocked, tmp_path / "twin", ("dlqs",), keys)
    assert command == "rmqctl dlq redrive billing --all --rate 50/s --reason why"
    assert run("dlq", "browse", "billing", "-S", stocked, "-o", "json").json() == []


@pytest.mark.slow
def test_a_slow_redrive_is_stopped_before_the_next_message_and_goes_on_by_the_command(stocked):
    resume, before = [], stored(stocked)

    async def steps(console):
        await turn_on(console)
        await console.press("R", "space", "f", "enter")
        await console.until("is not a rate")
        await console.press("backspace", *"1", "slash", "h", "enter")
        await console.until("Type billing")
        await console.press("enter", "enter")
        await console.type("billing")
        sheet = console.app.desk.sheet
        await console.press("enter")
        await console.until(lambda: stored(stocked) == before + 1)  # the first one, at once
        stages = [sheet.stage]
        await console.press("x")
        await console.until("stopped: 1 of 3 were tried")
        assert [*stages, sheet.stage] == [Stage.APPLYING, Stage.DONE]
        found = re.search(r"'rmqctl (dlq redrive billing --resume \S+)'", console.words())
        assert found is not None
        resume.append(found[1])

    drive(stocked, steps, "dlqs", size=(140, 40))
    assert depth(stocked) == 2
    assert run(*resume[0].split(), "--yes", "-S", stocked).code == 0
    assert depth(stocked) == 0


@pytest.mark.slow
def test_a_redrive_that_fails_half_way_says_after_how_many_and_what_goes_on(stocked, monkeypatch):
    resume, write, written = [], Receipts.write, []

    def full(receipts, receipt):
        written.append(receipt)
        if len(written) == 4:  # the first one begins the run
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "receipts")
        write(receipts, receipt)

    async def steps(console):
        await turn_on(console)
        await console.press("R", "enter")
        await console.until("Type billing")
        await console.press("enter", "enter")
        await console.type("billing")
        monkeypatch.setattr(Receipts, "write", full)
        await console.press("enter")
        await console.until("failed after 2 of 3")
        monkeypatch.setattr(Receipts, "write", write)
        said = console.words()
        assert os.strerror(errno.ENOSPC) in said
        assert "Done (" not in said
        assert "2 done." in said
        size = console.app.size
        lines = console.app.lines(size.width, size.height)
        assert not [span for line in lines for span in line if span.role is Role.GOOD]
        found = re.search(r"'rmqctl (dlq redrive billing --resume \S+)'", said)
        assert found is not None
        resume.append(found[1])

    before = stored(stocked)
    drive(stocked, steps, "dlqs", size=(140, 40))
    assert run(*resume[0].split(), "--yes", "-S", stocked).code == 0
    assert (depth(stocked), stored(stocked)) == (0, before + 3)


def stored(store):
    """The messages of the topic that dead letters are sent to."""
    rows = run("topic", "list", "-o", "json", "-S", store).json()
    return sum(row["messages"] for row in rows if row["topic"] == "orders")


def depth(store):
    """The dead letters that are not handled."""
    (row,) = run("dlq", "list", "-o", "json", "-S", store).json()
    return row["unhandled"]


@pytest.mark.slow
def test_dead_letters_of_a_reason_are_acknowledged_and_the_marks_taken_off(stocked, tmp_path):
    command = compared(stocked, tmp_path / "twin", ("dlq", "billing"), [("A",)])
    assert command == "rmqctl dlq ack billing 0 2 --reason why"
    assert len(run("dlq", "browse", "billing", "-S", stocked, "-o", "json").json()) == 1

    async def steps(console):
        await turn_on(console)
        await console.press("A")
        await carry_out(console)
        await console.press("u")
        await carry_out(console)

    drive(stocked, steps, "dlq", "billing")
    left = run("dlq", "browse", "billing", "-S", stocked, "-o", "json").json()
    assert [row["queue_offset"] for row in left] == [1]


@pytest.mark.slow
def test_the_undo_of_an_acknowledgement_is_that_of_this_one(stocked):
    async def steps(console):
        await turn_on(console)
        await console.press("A")
        await carry_out(console)
        assert "this is change 1" in console.words()
        assert run("dlq", "ack", "billing", 1, "--yes", "-S", stocked).code == 0
        await console.press("u")
        await console.until("Type billing")
        assert "undo change 1" in console.text()
        sheet = console.app.desk.sheet
        assert [row.queue_offset for row in sheet.plan.change.plan] == [0, 2]
        assert sheet.command() == "rmqctl dlq ack billing 0 2 --undo"
        await carry_out(console)

    drive(stocked, steps, "dlq", "billing", size=(140, 40))
    left = run("dlq", "browse", "billing", "-S", stocked, "-o", "json").json()
    assert [row["queue_offset"] for row in left] == [0, 2]


@pytest.mark.parametrize(("key", "verb"), [("N", "now"), ("D", "dead")])
@pytest.mark.slow
def test_the_wait_of_a_retry_is_ended(stocked, tmp_path, key, verb):
    command = compared(stocked, tmp_path / "twin", ("retries", "billing"), [(key,)])
    assert command.startswith(f"rmqctl retry {verb} billing ")
    assert len(run("retry", "browse", "billing", "-S", stocked, "-o", "json").json()) == 1 + (
        verb == "now"
    )


@pytest.mark.slow
def test_a_snapshot_is_taken_to_a_folder_that_is_typed(stocked, tmp_path):
    target = tmp_path / "saved"

    async def steps(console):
        await turn_on(console)
        await console.type(":snapshot")
        await console.press("enter")
        await console.type(str(stocked / "inside"))
        await console.press("enter")
        await console.until("is inside the store")
        assert "Type s" not in console.text()
        await console.press("escape", "ctrl+u")
        await console.type(str(target))
        await console.press("enter")
        await carry_out(console, "s")

    drive(stocked, steps, "groups", size=(140, 40))
    assert run("store", "snapshot", "--verify", target).code == 0


@pytest.mark.slow
def test_what_a_snapshot_warns_of_is_shown_when_it_is_done(stocked, tmp_path):
    torn = stocked / "config" / "consumerFilter.json"
    torn.write_text("{")
    command = run("store", "snapshot", "--save", tmp_path / "first", "-S", stocked)
    said = "is not whole JSON; copied as it is"
    assert said in command.err

    async def steps(console):
        await turn_on(console)
        await console.type(":snapshot")
        await console.press("enter")
        await console.type(str(tmp_path / "second"))
        await console.press("enter")
        await carry_out(console, "s")
        assert said in console.words()
        size = console.app.size
        lines = console.app.lines(size.width, size.height)
        assert not [span for line in lines for span in line if span.role is Role.GOOD]

    drive(stocked, steps, "groups", size=(140, 40))
    torn.unlink()


@pytest.mark.slow
def test_a_store_is_repaired_by_its_plan(stocked):
    queue = next((stocked / "consumequeue" / "orders").rglob("0*0"))
    queue.unlink()

    async def steps(console):
        await turn_on(console)
        await console.type(":repair")
        await console.press("enter")
        await console.until("Type s")
        assert "= rmqctl store repair" in console.text()
        await carry_out(console, "s")

    drive(stocked, steps, "groups")
    assert run("store", "fsck").code == 0
    assert [row["command"] for row in journal(stocked)] == ["store repair"]


@pytest.mark.slow
def test_what_may_take_long_opens_the_store_anew_after_a_repair(stocked):
    queue = next((stocked / "consumequeue" / "orders").rglob("0*0"))
    queue.unlink()
    brokers: list[Any] = []

    async def steps(console):
        def opened(count):
            console.app.walker.call(lambda source: source.broker, brokers.append)
            return console.until(lambda: len(brokers) == count)

        await turn_on(console)
        await console.type(":search again")
        await console.press("enter")
        await console.read()
        await opened(1)
        await console.type(":repair")
        await console.press("enter")
        await console.until("Type s")
        await carry_out(console, "s")
        await opened(2)
        assert brokers[0] is not brokers[1]

    drive(stocked, steps, "groups")


@pytest.mark.slow
def test_letters_that_were_marked_of_another_reason_are_meant_too(stocked):
    async def steps(console):
        def letters():
            return console.app.panes[1].table.shown

        await console.read()
        await console.press("tab", "space", "tab", "j")
        await console.until(lambda: [row.queue_offset for row in letters()] == [1])
        await console.press("tab", "space", "R")
        assert console.app.desk.command == "rmqctl dlq redrive billing 0 1"

    drive(stocked, steps, "dlq", "billing", size=(140, 24))


@pytest.mark.slow
def test_a_letter_of_its_own_screen_and_the_retry_of_its_own_are_chosen(stocked):
    msg_id = run("retry", "browse", "billing", "-S", stocked, "-o", "json").json()[0]["msg_id"]

    async def steps(console):
        await console.read()
        for place, keys, command in (
            (Place("letter", ("billing", "2")), ("tab", "A"), "dlq ack billing 2"),
            (Place("dlq", ("billing", "tag")), ("R",), "dlq redrive billing OFFSET..."),
            (Place("dlqs"), ("R",), "dlq redrive billing --all"),
            (Place("retry", ("billing", msg_id)), ("j", "N"), f"retry now billing {msg_id}"),
            (Place("agenda"), ("N",), None),
        ):
            console.app.go(place)
            await console.read()
            await console.press(*keys)
            assert console.app.desk.command == (command and f"rmqctl {command}"), place

    drive(stocked, steps, "groups", size=(140, 40))
