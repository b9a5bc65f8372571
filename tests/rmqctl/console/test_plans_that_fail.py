"""Plans whose store breaks between the look and the change: a sentence, and the console goes on."""

import shutil
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from rmqctl.console.plans.sheet import Stage
from tests.rmqctl.console.test_changes import committed, turn_on
from tests.rmqctl.console.test_changes_of_messages import stocked
from tests.rmqctl.console.test_terminal_restored import ENDED, Ending
from tests.support.cli import run
from tests.support.console import drive, terminal

__all__ = ["stocked"]


@contextmanager
def replaced(path, broken):
    """Another thing in the place of a file or a folder: a folder, a file, or nothing."""
    away = path.with_name("away")
    path.rename(away)
    if broken == "folder":
        path.mkdir()
    elif broken == "file":
        path.write_text("no folder")
    try:
        yield
    finally:
        if broken == "folder":
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        away.rename(path)


class Planned(NamedTuple):
    """A change: where it is planned, by which keys, and the name that carries it out."""

    words: tuple[str, ...]
    key: str
    keys: tuple[str, ...] = ()
    name: str = "billing"


RESET = Planned(("groups",), "r", ("enter", "earliest", "enter"))
LETTERS = Planned(("dlq", "billing"), "R", ("enter",))
MARKS = Planned(("dlq", "billing"), "A")
RETRY = Planned(("retries", "billing"), "N")
REPAIR = Planned(("health",), "M", name="s")
JOURNAL = ("rmqctl/journal", "file")
OFFSETS = ("config/consumerOffset.json", "folder")
LOG = ("commitlog", "file")
AWAY = ("", "nothing")
CASES = {
    "reset-away": (RESET, AWAY),
    "reset-journal": (RESET, JOURNAL),
    "reset-offsets": (RESET, OFFSETS),
    "redrive-journal": (LETTERS, JOURNAL),
    "redrive-log": (LETTERS, LOG),
    "ack-journal": (MARKS, JOURNAL),
    "retry-away": (RETRY, AWAY),
    "retry-journal": (RETRY, JOURNAL),
    "repair-away": (REPAIR, AWAY),
    "repair-journal": (REPAIR, JOURNAL),
}


USUAL = {"reset-journal", "redrive-log", "retry-away"}


@pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
@pytest.mark.parametrize(
    ("change", "broken"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.long] * (name not in USUAL))
        for name, case in CASES.items()
    ],
)
@pytest.mark.slow
def test_what_breaks_after_the_look_is_said_and_the_plan_can_be_made_again(stocked, change, broken):
    words, key, keys, name = change
    run("consume", "orders", "-g", "billing", "-e", "-c", "2", "-S", stocked)
    run("offset", "reset", "billing", "-t", "orders", "--to-latest", "--yes", "-S", stocked)
    if words == ("health",):
        next((stocked / "consumequeue" / "orders").rglob("0*0")).unlink()
    before = committed(stocked) if words == ("groups",) else None
    path, kind = broken

    async def steps(console):
        await turn_on(console)
        await console.press(key)
        for one in keys:
            await (console.press(one) if one == "enter" else console.type(one))
        await console.until(f"Type {name} ")
        await console.press("enter", "enter")
        await console.type(name)
        sheet = console.app.desk.sheet
        with replaced(stocked / path, kind):
            await console.press("enter")
            await console.until(lambda: sheet.banner or sheet.done.error)
            await console.until(lambda: sheet.stage not in (Stage.READING, Stage.APPLYING))
            said = console.words()
            sentence = sheet.banner or sheet.done.error
            assert " ".join(sentence.split())[:60] in said
            assert "internal error" not in said
        if sheet.stage is Stage.DONE:
            await console.press("escape")
            return
        if sheet.stage is Stage.QUESTIONS:
            await console.press("enter")
        else:
            await console.press("ctrl+r")
        await console.until(f"Type {name} ")

    drive(stocked, steps, *words, size=(140, 40))
    if before is not None:
        assert committed(stocked) == before
    assert run("store", "repair", "--yes", "-S", stocked).code == 0


@pytest.mark.slow
def test_on_a_terminal_it_goes_on_and_leaves_the_terminal_whole(stocked):
    run("consume", "orders", "-g", "billing", "-e", "-S", stocked)
    run("offset", "reset", "billing", "-t", "orders", "--to-latest", "--yes", "-S", stocked)
    with terminal(stocked, "groups", "--write") as console:
        ending = Ending(console, "CHANGES ON")
        console.until("billing ")
        console.send("r\rearliest\r")
        console.until("Type billing")
        console.send("\rwhy\r")
        with replaced(stocked / "rmqctl" / "journal", "file"):
            console.send("billing\r")
            console.until(lambda: "! " in console.text())
            console.until("CHANGES ON")
        console.send("\x12")
        console.until("Type billing")
        console.send("\x03")
        assert console.ended() == 0
        ending.restored()
        assert b"Traceback" not in console.raw.rpartition(ENDED)[2]
