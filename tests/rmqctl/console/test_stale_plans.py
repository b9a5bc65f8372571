"""A plan that a second process has made stale: nothing is done, and the plan is made anew."""

import shutil
import subprocess
from typing import NamedTuple

import pytest
from textual.events import Paste

from rmqctl.console.plans.sheet import Stage
from tests.rmqctl.console.test_changes import journal
from tests.rmqctl.console.test_changes_of_messages import stocked
from tests.rmqctl.console.test_walks import PROGRAM
from tests.rmqctl.console.test_writes_nothing import files_of
from tests.support.cli import run
from tests.support.console import drive

__all__ = ["stocked"]
CHOSEN = ("retry", "browse", "billing", "-o", "json")


class Stale(NamedTuple):
    """A change that is planned, and a command that comes between its plan and its Enter."""

    words: tuple[str, ...]
    keys: tuple[str, ...]
    """Keys up to the plan, texts that are typed, and what is waited for."""
    between: tuple[str, ...]
    name: str = "billing"
    left: bool = True
    """Whether the new plan can be carried out."""
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that come first."""


RESET = ("offset", "reset", "billing", "-t", "orders")
PLANS = {
    "reset": Stale(
        ("groups",), ("r", "enter", "earliest", "enter"), (*RESET[:-1], "orders:0", "--to-latest")
    ),
    "undo": Stale(
        ("groups",),
        ("u",),
        (*RESET[:-1], "orders:0", "--to-offset", "1"),
        name="s",
        before=((*RESET, "--to-earliest"),),
    ),
    "redrive": Stale(("dlq", "billing"), ("R", "enter"), ("dlq", "redrive", "billing", "0")),
    "redrive of acknowledged ones": Stale(
        ("dlqs",), ("R", "enter"), ("dlq", "ack", "billing", "0", "1")
    ),
    "acknowledge all": Stale(("dlqs",), ("A",), ("dlq", "ack", "billing", "1")),
    "undo of an acknowledgement": Stale(
        ("dlqs",),
        ("A", "until Type", "enter", "enter", "billing", "enter", "until Done", "u"),
        ("dlq", "ack", "billing", "0", "--undo"),
    ),
    "acknowledge": Stale(("dlq", "billing"), ("A",), ("dlq", "ack", "billing", "0")),
    "deliver now": Stale(
        ("retries", "billing"), ("N",), ("retry", "now", "billing", "ID"), left=False
    ),
    "make dead": Stale(
        ("retries", "billing"), ("D",), ("retry", "dead", "billing", "ID"), left=False
    ),
    "repair": Stale(
        ("health",), ("M",), ("store", "repair"), name="s", left=False, before=(("LOSE A QUEUE",),)
    ),
    "snapshot": Stale(
        ("health",),
        ("B", "TARGET", "enter"),
        ("store", "snapshot", "--save", "TARGET"),
        name="s",
        left=False,
    ),
}


def kept(store):
    """The bytes of messages, queues and settings; other files are written by opening a store."""
    folders = ("commitlog", "consumequeue", "config", "rmqctl/journal")
    return {name: found for name, found in files_of(store).items() if name.startswith(folders)}


MORE = {"redrive of acknowledged ones", "acknowledge all", "make dead"}
"""Changes of which another one is like them."""


@pytest.mark.parametrize(
    "stale",
    [
        pytest.param(stale, id=name, marks=[pytest.mark.long] * (name in MORE))
        for name, stale in PLANS.items()
    ],
)
@pytest.mark.slow
def test_nothing_is_done_and_the_plan_is_made_anew(stocked, tmp_path, stale):
    run("consume", "orders", "-g", "billing", "-e", "-c", "2", "-S", stocked)
    waiting = run(*CHOSEN, "-S", stocked).json()
    named = {"ID": waiting[0]["msg_id"], "TARGET": str(tmp_path / "saved")}

    def command(words):
        given = [named.get(word, word) for word in words]
        yes = [] if "snapshot" in words else ["--yes"]
        return [*given, *yes, "-S", str(stocked)]

    for words in stale.before:
        if words == ("LOSE A QUEUE",):
            next((stocked / "consumequeue" / "orders").rglob("0*0")).unlink()
        else:
            done = run(*command(words))
            assert done.code == 0, done.err

    async def steps(console):
        await console.read()
        console.app.desk.writes = True
        for key in stale.keys:
            if key.startswith("until "):
                await console.until(key.removeprefix("until "))
            elif key in ("earliest", "TARGET", "billing"):
                console.app.on_paste(Paste(named.get(key, key)))
            else:
                await console.press(key)
        await console.until(f"Type {stale.name} ")
        await console.press("enter")
        console.app.on_paste(Paste("why"))
        await console.press("enter")
        console.app.on_paste(Paste(stale.name))
        between = [PROGRAM, *command(stale.between)]
        subprocess.run(between, check=True, capture_output=True)
        files, done = kept(stocked), journal(stocked)
        sheet = console.app.desk.sheet
        await console.press("enter")
        await console.until(lambda: sheet.banner and sheet.stage is Stage.PLAN)
        assert kept(stocked) == files
        assert journal(stocked) == done
        assert "nothing was changed: " in console.words()
        assert sheet.plan.can_be_done is stale.left
        if stale.left:
            assert "The plan was made anew" in console.words()
            await console.press("enter")
            assert sheet.name.text == ""
            assert sheet.reason.text == "why"
        await console.press("escape")

    drive(stocked, steps, *stale.words, size=(140, 40))
    shutil.rmtree(tmp_path / "saved", ignore_errors=True)
