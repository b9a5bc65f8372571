"""The plan of a repair checks the whole store: it says how far it is, and ends if it is left."""

import threading

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.plans import planning, stores
from rmqctl.console.plans.wish import Stopped
from storage.clock import now_ms
from tests.support.cli import run
from tests.support.console import drive


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
