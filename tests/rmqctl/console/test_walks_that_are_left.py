"""Walks whose screen is left: the screen says that they were stopped, and they can go on."""

import pytest
from textual.events import Key as KeyEvent

from rmqctl.console.looks import store as store_looks, walks
from rmqctl.console.looks.look import Place
from tests.rmqctl.console.test_messages import complete, stocked
from tests.rmqctl.console.test_walks import following, produce
from tests.support.console import drive
from tests.support.examples import one_in

__all__ = ["stocked"]


def at_first_rows(app, look, key):
    """Press a key with the first rows of a look, while it waits."""
    take, came = app._take, []

    def taken(batch):
        take(batch)
        if batch.asked.look is look and batch.rows:
            came.append(batch)
            if len(came) == 1:
                app.on_key(KeyEvent(key, key))

    app._take = taken


@pytest.mark.parametrize("back", one_in(3, ["escape", "left_square_bracket", "minus"]))
@pytest.mark.slow
def test_a_search_that_was_left_says_so_and_begins_again(stocked, back):
    produce(stocked, "orders", 3000)

    async def steps(console):
        app = console.app
        at_first_rows(app, walks.SEARCH, "enter")
        await console.type(":search n -t orders")
        await console.press("enter")
        await console.until(lambda: app.place.screen == "message")
        await console.press(back)
        assert app.place.screen == "search"
        pane = app.panes[0]
        hits = pane.table.total
        assert 0 < hits < 3060
        assert "so far" in console.text()
        assert "stopped (^r: again)" in console.text()
        assert "(x stops)" not in console.text()
        await console.press("G", "n")
        assert "the search is stopped (^r: again)" in console.text()
        await console.press("ctrl+r")
        await console.until(lambda: pane.table.total == 3060 and not pane.loading)
        assert "stopped" not in console.text()
        assert pane.cursor == hits - 1

    drive(stocked, steps, size=(100, 24))


@pytest.mark.slow
def test_escape_leads_back_to_the_row_that_led_to_a_screen(stocked):
    async def steps(console):
        await console.type(":search 7 -t orders")
        await console.press("enter")
        await complete(console)
        await console.press("j", "enter")
        await complete(console)
        await console.press("L")
        await complete(console)
        await console.press("enter")
        await complete(console)
        screens = [place.screen for place in console.app.places]
        assert screens == ["groups", "search", "message", "life", "message"]
        seen = []
        for _ in range(3):
            await console.press("escape")
            seen.append(console.app.place.screen)
        assert seen == ["life", "message", "search"]
        assert console.app.pane.cursor == 1

    drive(stocked, steps)


@pytest.mark.slow
def test_following_that_was_left_says_so_and_begins_again(stocked):
    async def steps(console):
        await following(console)
        produce(stocked, "orders", 3)
        await console.until("3 came, 3 kept")
        await console.press("enter")
        await complete(console)
        await console.press("escape")
        await console.until("3 came, 3 kept, stopped (^r: again)")
        assert console.app.panes[0].table.total == 3
        await console.press("ctrl+r")
        await console.until("0 came, 0 kept")
        produce(stocked, "orders", 2)
        await console.until("2 came, 2 kept")
        assert "stopped" not in console.text()

    drive(stocked, steps, "follow", "orders", "*", size=(100, 24))


@pytest.mark.slow
def test_what_was_left_before_its_first_row_is_read_on_return(stocked):
    async def steps(console):
        app = console.app
        app.on_key(KeyEvent("C", "C"))  # before anything of the screen is read
        assert app.place.screen == "check"
        await complete(console)
        await console.press("escape")
        assert app.place.screen == "health"
        await complete(console)
        assert app.pane.look is store_looks.DISK
        assert app.pane.table.total
        assert "so far" not in console.text()

    drive(stocked, steps, "health")


@pytest.mark.slow
def test_hours_whose_reading_was_ended_say_so(stocked):
    async def steps(console):
        app = console.app
        await complete(console)
        for _ in range(50):  # another thread may have read them before the key
            app.go(Place("topic", ("orders",)))
            hours = next(pane for pane in app.panes if pane.look.walk)
            app.on_key(KeyEvent("x", "x"))
            await console.until(lambda hours=hours: not hours.loading)
            if hours.stopped:
                break
        await console.until("stopped (^r: again)")
        await console.press("ctrl+r")
        await console.until("an hour each")
        assert "stopped" not in console.text()

    drive(stocked, steps, size=(140, 50))


def test_hours_are_read_again_by_a_key_that_comes_before_their_reading_has_ended(stocked):
    async def steps(console):
        app = console.app
        await complete(console)
        app.go(Place("topic", ("orders",)))
        app.on_key(KeyEvent("x", "x"))
        app.on_key(KeyEvent("ctrl+r", None))
        await console.until("an hour each")
        assert "stopped" not in console.text()

    drive(stocked, steps, size=(140, 50))


@pytest.mark.parametrize("screen", ["overview", "groups"])
def test_what_was_stopped_before_it_had_begun_is_read_again_at_once(stocked, screen):
    async def steps(console):
        app = console.app
        await complete(console)
        app.look_every(3_600.0)  # no later look helps
        await console.until(lambda: not app.reader.busy)
        app.go(Place(screen))
        app.on_key(KeyEvent("x", "x"))
        app.on_key(KeyEvent("ctrl+r", None))
        await console.read()
        assert "stopped (^r: again)" not in console.text()

    drive(stocked, steps, "topics", size=(140, 50))
