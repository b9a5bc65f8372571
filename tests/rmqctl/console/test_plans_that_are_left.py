"""A plan that reads a whole store, or all dead letters, says how far it is; left, it ends."""

import threading

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.look import Place, Progress, Source
from rmqctl.console.plans import planning, stores
from rmqctl.console.plans.dead_letters import Letters, Redrive, _Pace, acknowledge
from rmqctl.console.plans.wish import Stopped
from storage.clock import now_ms
from storage.format.message import Message
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import bury

REASON = "RuntimeError: no reason at all"
LETTERS = 40
"""More than are read at once."""
OF_LETTERS = {
    "all are sent": Redrive(Letters("g")).wish,
    "those of a reason are sent": Redrive(Letters("g", (), "reason", REASON)).wish,
    "all are marked": lambda: acknowledge(Letters("g")),
}


@pytest.fixture
def stocked(store):
    """A topic."""
    run("produce", "orders", stdin=b"1\n2\n")
    return store


def test_a_check_for_a_plan_ends_where_the_plan_is_not_wanted(stocked):
    told = []

    def advance(progress):
        told.append(progress)
        raise Stopped

    with EmbeddedBroker.open(stocked, read_only=True) as broker:
        source = Source(broker, now_ms(), lambda sentence: None, {}, advance)
        plan = planning.make_plan(source, stores.repair("s"))
    assert len(told) == 1
    assert plan.change is None
    assert plan.error is not None


@pytest.fixture
def buried(store):
    """Dead letters of a group."""
    bury(store, "g", [Message("orders", bytes([number])) for number in range(LETTERS)])
    return store


def planned(root, wish, advance):
    with EmbeddedBroker.open(root, read_only=True) as broker:
        return planning.make_plan(Source(broker, now_ms(), lambda _: None, {}, advance), wish)


@pytest.mark.parametrize("wish", OF_LETTERS.values(), ids=OF_LETTERS)
def test_a_plan_of_letters_says_how_many_it_has_looked_at(buried, wish):
    told: list[Progress] = []
    plan = planned(buried, wish(), told.append)
    assert len(plan.change.plan) == LETTERS
    assert told[0] == (0, LETTERS, "messages", 0)
    assert told[-1] == (LETTERS, LETTERS, "messages", 0)
    assert 0 < told[1].done < LETTERS


@pytest.mark.parametrize("wish", OF_LETTERS.values(), ids=OF_LETTERS)
def test_it_ends_where_it_is_not_wanted_any_more(buried, wish):
    whole: list[Progress] = []
    planned(buried, wish(), whole.append)
    for last in range(1, len(whole)):
        told: list[Progress] = []

        def advance(progress, told=told, last=last):
            told.append(progress)
            if len(told) == last:
                raise Stopped

        plan = planned(buried, wish(), advance)
        assert plan.change is None
        assert len(told) == last, "it has ended at once"


@pytest.mark.slow
def test_a_plan_says_how_far_it_is_and_its_check_ends_when_it_is_left(stocked):
    async def steps(console):
        await console.read()
        app = console.app
        app.desk.writes = True
        await console.press("M")
        sheet = app.desk.sheet
        await console.until("There is nothing to change.")
        assert sheet.progress.unit == "bytes"
        assert 0 < sheet.progress.done <= sheet.progress.total
        gate, answers = threading.Event(), []
        app.reader.call(lambda source: gate.wait(30), lambda value: None)
        await console.press("ctrl+r")
        assert "making the plan ..." in console.text()
        app.desk._from_thread = lambda function, *given: answers.append(given)
        await console.press("escape")
        assert app.desk.sheet is None
        gate.set()
        await console.until(lambda: bool(answers))
        ((plan,),) = answers
        assert plan.change is None, "the check was ended"
        app.go(Place("topics"))
        await console.until("orders")

    drive(stocked, steps, "health", size=(140, 40))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["r", "u"], ids=["questions", "another plan"])
def test_a_plan_that_was_left_and_fails_late_is_not_about_the_next_change(stocked, key):
    away = stocked.with_name("away")
    run("consume", "orders", "-g", "billing", "-e")

    async def steps(console):
        await console.read()
        app = console.app
        app.desk.writes, app.paused = True, True
        begun, gate, gone, answers = threading.Event(), threading.Event(), [], []

        def wait(source):
            begun.set()
            gate.wait(30)

        app.reader.call(wait, lambda value: None)
        await console.press("u")
        await console.until(begun.is_set)
        await console.press("escape", key)
        sheet = app.desk.sheet
        stage, hand_over = sheet.stage, app.desk._from_thread
        app.desk._from_thread = lambda function, *given: answers.append((function, given))
        stocked.rename(away)
        gate.set()
        await console.until(lambda: bool(answers))
        function, given = answers.pop(0)
        function(*given)
        gone.append(sheet.stage)
        app.desk._from_thread = hand_over
        for function, given in answers:
            function(*given)
        away.rename(stocked)
        assert gone == [stage]
        assert sheet.banner == sheet.problem == ""

    drive(stocked, steps, "groups", size=(140, 40))


@pytest.mark.parametrize("rate", [1.0, 1e-6 / 3600, 5e-324])
def test_a_wait_for_the_rate_ends_at_once_however_long_it_is(rate):
    ended = []
    pace = _Pace(rate)

    def send():
        pace.wait()
        pace.end()
        try:
            pace.wait()
        except Stopped as error:
            ended.append(error)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    thread.join(10)
    assert len(ended) == 1
