"""``y``, ``s``, ``esc`` and the mouse on lists; the cursor is on a pane that is shown."""

import pytest

from rmqctl.console.looks.look import Place
from rmqctl.console.shapes import RULE
from storage.clock import now_ms
from tests.support.cli import run
from tests.support.console import drive, json_rows
from tests.support.rich_store import make_rich_store


@pytest.fixture
def stocked(store):
    """A topic, and two groups with a lag."""
    run("produce", "orders", stdin=b"".join(b"%d\n" % n for n in range(30)))
    run("consume", "orders", "-g", "billing", "-e", "-c", "10")
    run("consume", "orders", "-g", "audits", "-e", "-c", "5")
    return store


@pytest.mark.slow
def test_y_copies_the_name_of_the_row_or_the_cell_that_is_sorted_by(stocked, monkeypatch):
    copied: list[str] = []

    async def steps(console):
        monkeypatch.setattr(console.app, "copy", copied.append)
        await console.read()
        await console.press("y")
        assert copied.pop() == "audits"
        await console.type(":sort lag")
        await console.press("enter", "y")
        assert copied.pop() == "20"
        for place in (Place("messages", ("orders",)), Place("search", ("29",))):
            console.app.go(place)
            await console.read()
            await console.press("y")
            assert copied.pop() == console.app.pane.row().msg_id
        console.app.go(Place("group", ("billing",)))
        await console.read()
        await console.press("y")
        assert copied.pop() == str(console.app.pane.row().queue_id)
        await console.press("slash", *"no such text", "enter", "y")
        assert not copied
        assert "there is no row under the cursor" in console.text()

    drive(stocked, steps, "groups", size=(140, 40))


@pytest.mark.slow
def test_y_copies_what_names_a_row_of_events_or_of_what_needs_attention(tmp_path, monkeypatch):
    made = make_rich_store(tmp_path / "s", now_ms() - 600_000)
    copied: list[str] = []

    async def steps(console):
        monkeypatch.setattr(console.app, "copy", copied.append)
        await console.read()  # several looks make the list, and each may put a row first
        row = console.app.pane.row()
        await console.press("y")
        assert copied.pop() == (row.group or row.topic or row.what) != row.state
        console.app.go(Place("life", (made.words["dead_id"],)))
        await console.read()
        await console.press("y")
        assert copied.pop() == console.app.pane.row().msg_id

    drive(made.root, steps, "overview", size=(140, 40))


@pytest.mark.slow
def test_s_again_turns_the_order_and_keeps_to_shown_columns(stocked):
    async def steps(console):
        await console.read()
        table = console.app.pane.table
        await console.type(":columns lag,members,store")
        await console.press("enter")
        await console.type(":columns group,lag,topic")
        await console.press("enter")
        found = []
        for _ in range(7):
            await console.press("s")
            found += table.view.sort
        ring = ["topic", "-topic", "group", "-group", "lag", "-lag", "topic"]
        assert found == ring
        command = console.app.pane.command()
        assert [row["topic"] for row in json_rows(stocked, command)] == ["orders", "orders"]

    drive(stocked, steps, "groups")


@pytest.mark.slow
def test_a_click_puts_the_cursor_on_a_row_and_a_second_one_enters(stocked, monkeypatch):
    copied: list[str] = []

    async def steps(console):
        monkeypatch.setattr(console.app, "copy", copied.append)
        await console.read()
        lines = console.lines()
        y = next(n for n, line in enumerate(lines) if "billing" in line)
        assert console.app.pane.row().group == "audits"
        await console.pilot.click(offset=(lines[y].index("billing"), y))
        assert console.app.pane.row().group == "billing"
        assert console.app.place.screen == "groups"
        await console.press("y")
        assert copied.pop() == "billing"
        await console.pilot.click(offset=(console.lines()[y].index("20"), y))
        assert console.app.place == Place("group", ("billing",))
        await console.read()
        lines = console.lines()
        y = next(n for n, line in enumerate(lines) if "MEMBERS" in line and RULE * 2 in line)
        await console.pilot.click(offset=(lines[y].index("MEMBERS"), y))
        assert console.app.pane.spec.title == "MEMBERS"
        await console.pilot.click(offset=(4, 0))
        await console.pilot.click(offset=(4, 38))
        assert console.app.place == Place("group", ("billing",))

    drive(stocked, steps, "groups", size=(140, 40))


@pytest.mark.slow
def test_a_click_on_the_row_under_the_cursor_does_not_enter(stocked):
    async def steps(console):
        await console.read()
        y = next(n for n, line in enumerate(console.lines()) if "audits" in line)
        await console.pilot.click(offset=(4, y))
        assert console.app.place.screen == "groups"
        await console.press("question_mark")
        await console.pilot.click(offset=(4, y))
        assert console.app.place.screen == "groups"

    drive(stocked, steps, "groups")


@pytest.mark.slow
def test_esc_goes_back_one_screen(stocked):
    async def steps(console):
        await console.read()
        for screen in ("health", "agenda", "dlqs", "topics"):
            await console.type(f":{screen}")
            await console.press("enter")
        for screen in ("dlqs", "agenda", "health", "overview"):
            await console.press("escape")
            assert console.app.place.screen == screen
        await console.press("escape")
        assert console.app.place.screen == "overview"
        console.app.go(Place("group", ("billing",)))
        await console.press("escape")
        assert console.app.place.screen == "overview"

    drive(stocked, steps, "overview")


@pytest.mark.slow
def test_esc_goes_up_from_the_first_screen(stocked):
    async def steps(console):
        await console.read()
        await console.press("escape")
        assert console.app.place == Place("groups")
        await console.press("escape")
        assert console.app.place == Place("groups"), "it does not go down again"
        await console.press("right_square_bracket")
        assert console.app.place == Place("group", ("billing",))

    drive(stocked, steps, "group", "billing")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 15), (80, 20), (80, 24)])
def test_the_cursor_is_on_a_pane_that_is_shown(stocked, size):
    async def steps(console):
        await console.read()
        shown = console.app.seen()
        assert console.app.active in shown
        assert console.app.pane.spec.title == "QUEUES"
        missing = [p.spec.title for n, p in enumerate(console.app.panes) if n not in shown]
        assert ("no room for" in console.lines()[2]) is bool(missing)
        assert all(title in console.lines()[2] for title in missing)
        await console.press("enter")
        assert console.app.place.screen == "messages"

    drive(stocked, steps, "group", "billing", size=size)


@pytest.mark.slow
def test_a_pane_that_loses_its_room_loses_the_cursor(stocked):
    async def steps(console):
        await console.read()
        await console.press("tab")
        assert console.app.pane.spec.title == "LAST CHANGES"
        await console.pilot.resize_terminal(60, 15)
        await console.until(lambda: console.app.size.height == 15)
        await console.until(lambda: console.app.pane.spec.title == "QUEUES")
        await console.press("enter")
        assert console.app.place.screen == "messages"

    drive(stocked, steps, "group", "billing", size=(140, 40))
