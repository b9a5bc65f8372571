"""Another store in the place of the one that a plan or a finding is about."""

import queue
from typing import NamedTuple

import pytest
from textual.events import Paste

from rmqctl.console.looks.look import LAG_HISTORY, Look, Place
from rmqctl.console.plans.sheet import Stage
from rmqctl.console.reading import Asked, Batch, Reader
from storage.format.message import Message
from tests.rmqctl.console.test_changes import turn_on
from tests.rmqctl.console.test_writes_nothing import files_of
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import bury


def filled(path, word):
    """A store with a group that has read a topic, and three dead letters, at a path."""
    run("store", "init", path)
    run("produce", "orders", "-S", path, stdin=b"one\ntwo\n")
    run("consume", "orders", "-g", "billing", "-e", "-S", path)
    bury(path, "billing", [Message("orders", b"%s %d" % (word, n)) for n in range(3)])
    return path


@pytest.fixture
def stores(tmp_path):
    """The store that is shown, and another one with the same groups, topics and offsets."""
    return filled(tmp_path / "s", b"first"), filled(tmp_path / "other", b"other")


def swap(shown, other):
    """Put the other store into the place of the one that is shown."""
    shown.rename(shown.with_name("old"))
    other.rename(shown)


def kept(store):
    """The files that a change writes; others are written by opening a store."""
    folders = ("commitlog", "consumequeue", "config", "rmqctl/journal", "rmqctl/handled")
    return {name: found for name, found in files_of(store).items() if name.startswith(folders)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (("groups",), ("r", "enter", "earliest", "enter")),
        (("dlqs",), ("R", "enter")),
        (("dlq", "billing"), ("A",)),
    ],
    ids=["reset", "redrive", "acknowledge"],
)
def test_a_plan_is_not_carried_out_in_another_store(stores, words, keys):
    shown, other = stores

    async def steps(console):
        app = console.app
        await turn_on(console)
        for key in keys:
            if key == "earliest":
                app.on_paste(Paste(key))
            else:
                await console.press(key)
        await console.until("Type billing")
        await console.press("enter", "enter")
        app.on_paste(Paste("billing"))
        swap(shown, other)
        before, sheet = kept(shown), app.desk.sheet
        old = [getattr(row, "msg_id", None) for row in sheet.plan.change.plan]
        await console.press("enter")
        await console.until(lambda: sheet.banner and sheet.stage is Stage.PLAN)
        assert f"{shown} was replaced by another store since the plan was made" in sheet.banner
        assert sheet.banner.startswith("nothing was changed: ")
        assert kept(shown) == before
        new = [getattr(row, "msg_id", None) for row in sheet.plan.change.plan]
        assert words == ("groups",) or not set(old) & set(new)
        await console.press("escape", "escape")

    drive(shown, steps, *words, size=(140, 40))


@pytest.mark.slow
def test_the_findings_of_a_check_are_those_of_the_store_that_is_shown(stores):
    shown, other = stores

    async def steps(console):
        app = console.app
        await console.read()
        await console.press("C")
        await console.until(lambda: not app.pane.loading)
        await console.press("escape")
        await console.until("ago: no errors, no warnings")
        swap(shown, other)
        await console.until("CHECK   never in this session")

    drive(shown, steps, "health", size=(140, 40))


class Kept(NamedTuple):
    """What a look keeps."""

    number: int


@pytest.mark.slow
def test_the_history_of_a_lag_is_that_of_the_store_that_is_read(stores):
    shown, other = stores
    numbers = iter(range(100))
    batches: queue.SimpleQueue[Batch] = queue.SimpleQueue()

    def read(source, place):
        source.view.queues()
        return [Kept(source.memory.setdefault(LAG_HISTORY, next(numbers)))]

    look = Look("kept", Kept, read, lambda place: (), ("number",))
    reader = Reader(shown, batches.put)
    reader.start()

    def seen():
        reader.ask(Asked(look, Place("groups"), everything=False, number=1))
        batch = batches.get(timeout=30)
        return None if batch.error else batch.rows[0].number

    try:
        first = seen()
        assert seen() == first
        away = shown.with_name("away")
        shown.rename(away)
        assert seen() is None
        away.rename(shown)
        assert seen() == first, "the same store"
        swap(shown, other)
        assert seen() != first
    finally:
        reader.end(10)
