"""Relative times of conditions count from the time of the look, as those of the command do."""

import pytest

from tests.support.cli import run
from tests.support.console import drive, json_rows


@pytest.fixture
def stocked(store):
    """A topic with one message, which a group has not read."""
    run("topic", "create", "orders", "--queues", "1")
    run("produce", "orders", stdin=b"first\n")
    run("consume", "orders", "-g", "billing", "-e")
    run("offset", "reset", "billing", "-t", "orders", "--to-earliest", "--yes")
    return store


PLACES = [
    (("audit",), "at_timestamp > -2s"),
    (("messages", "orders"), "store_timestamp > -2s"),
    (("groups",), "oldest_unread_timestamp > -2s"),
]


@pytest.mark.parametrize(("words", "where"), PLACES, ids=lambda value: value[0])
@pytest.mark.slow
def test_a_row_is_no_longer_shown_when_it_is_too_old(stocked, words, where):
    async def steps(console):
        await console.read()
        pane = console.app.pane
        assert pane.table.shown
        await console.type(":where")
        console.app.prompt.insert(f" {where}")
        await console.press("enter")
        await console.until(lambda: not pane.table.shown)
        assert pane.table.total
        assert json_rows(stocked, pane.command()) == []

    drive(stocked, steps, *words)


@pytest.mark.parametrize(("words", "where"), PLACES, ids=lambda value: value[0])
@pytest.mark.slow
def test_the_condition_of_the_call_counts_from_the_look_too(stocked, words, where):
    async def steps(console):
        await console.read()
        await console.until(lambda: not console.app.pane.table.shown)
        assert console.app.pane.table.total

    drive(stocked, steps, *words, where=where)
