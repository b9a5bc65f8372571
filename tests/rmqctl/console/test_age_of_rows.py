"""Rows that no look reads anew show their age; a paused console reads a new screen once."""

import threading

import pytest

from rmqctl.console.looks.look import Place
from tests.support.cli import run
from tests.support.console import drive


@pytest.fixture
def stocked(store):
    """A topic, and a group with a lag."""
    run("produce", "orders", stdin=b"".join(b"%d\n" % n for n in range(30)))
    run("consume", "orders", "-g", "billing", "-e", "-c", "10")
    return store


@pytest.mark.slow
def test_a_screen_that_is_opened_while_paused_is_read_once(stocked):
    async def steps(console):
        await console.read()
        await console.press("p")
        for place, shown in (
            (Place("group", ("billing",)), "billing"),
            (Place("topics"), "orders"),
            (Place("health"), "orders"),
            (Place("search", ("9 --in body",)), "HITS  3"),
        ):
            console.app.go(place)
            await console.read()
            await console.until(lambda shown=shown: shown in console.text())
            assert console.app.paused
            assert "paused" in console.lines()[1]
            numbers = [pane.number for pane in console.app.panes]
            assert not console.app.look(), "a second look reads nothing"
            assert [pane.number for pane in console.app.panes] == numbers

    drive(stocked, steps, "groups", size=(140, 40))


@pytest.mark.slow
def test_rows_that_a_paused_console_lacks_are_read_once(stocked):
    async def steps(console):
        await console.read()
        pane = console.app.pane
        await console.press("p")
        for typed, shown in (
            (":all", "TBW102"),
            (":all", "orders"),
            (":where kind=system", "TBW102"),
            (":where", "orders"),
        ):
            number = pane.number
            await console.type(typed)
            await console.press("enter")
            await console.until(lambda number=number: pane.number > number and not pane.loading)
            await console.until(shown)
            assert ("TBW102" in console.text()) == (shown == "TBW102")
            number = pane.number
            assert not console.app.look(), "a second look reads nothing"
            assert (pane.number, console.app.paused) == (number, True)

    drive(stocked, steps, "topics", size=(140, 40))


@pytest.mark.slow
def test_following_that_is_begun_while_paused_waits(stocked):
    async def steps(console):
        await console.read()
        await console.press("p")
        console.app.go(Place("follow", ("orders", "*")))
        await console.until("0 came")
        assert "paused" in console.lines()[1]
        await console.until(lambda: console.app.walker._held)
        run("produce", "orders", "-S", stocked, stdin=b"new\n")
        await console.press("p")
        await console.until("1 came")

    drive(stocked, steps, "topics", size=(100, 24))


@pytest.mark.slow
def test_what_is_read_once_shows_its_age(stocked):
    async def steps(console):
        await console.read()
        assert " old" not in console.app.panes[0].said_of_rows()
        disk = console.app.panes[1]
        await console.until(lambda: "old (^r: again)" in disk.said_of_rows())
        assert "s old (^r: again)" in console.text()
        assert ", rows " in console.lines()[1]
        assert " old" not in console.app.panes[2].said_of_rows(), "it is read again and again"
        number, as_of = disk.number, disk.as_of
        await console.press("ctrl+r")
        await console.until(lambda: disk.number > number and disk.as_of > as_of)
        console.app.go(Place("topic", ("orders",)))
        await console.until(lambda: "old (^r: again)" in console.text())

    drive(stocked, steps, "health", size=(80, 36))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 15), (140, 40)])
def test_rows_of_a_paused_console_show_their_age(stocked, size):
    async def steps(console):
        await console.read()
        assert " old" not in console.text()
        await console.press("p")
        await console.until(lambda: "paused, rows 1s old" in console.lines()[1])
        await console.until(lambda: "paused, rows 2s old" in console.lines()[1])
        await console.press("p")
        await console.until(lambda: " old" not in console.text())

    drive(stocked, steps, "groups", size=size)


@pytest.mark.parametrize("screen", ["overview", "groups"])
@pytest.mark.slow
def test_a_screen_that_a_paused_console_left_before_it_was_read_is_read_on_return(stocked, screen):
    async def steps(console):
        app, gate = console.app, threading.Event()
        await console.read()
        await console.press("p")
        app.reader.call(lambda source: gate.wait(30), lambda value: None)
        app.go(Place(screen))
        asked = app.pane.number
        await console.press("escape")
        gate.set()
        assert asked, "it was asked for"
        await console.until(lambda: not app.reader.busy)
        await console.press("right_square_bracket")
        assert app.place.screen == screen
        await console.read()
        assert not any(app.panes[n].loading for n in app.seen())
        assert "reading ..." not in console.text()
        assert "parts read" not in console.text()

    drive(stocked, steps, "topics", size=(140, 40))
