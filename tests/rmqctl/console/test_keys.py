"""The table of keys, and what it gives: the palette, columns, and the words after ``:``."""

from importlib import import_module

import pytest

from rmqctl.console.keys import KEYS, WORDS, keys_of
from rmqctl.console.plans.desk import CHANGING
from rmqctl.console.program.palette import Palette
from rmqctl.console.screens.table import TABLE
from tests.support.cli import run
from tests.support.console import drive, json_rows


@pytest.fixture
def stocked(store):
    """A topic, and a group with a lag."""
    run("produce", "orders", stdin=b"".join(b"%d\n" % n for n in range(30)))
    run("consume", "orders", "-g", "billing", "-e", "-c", "10")
    return store


@pytest.mark.parametrize("screen", TABLE)
def test_no_key_means_two_things_on_one_screen(screen):
    names = [name for key in keys_of(screen) for name in key.keys]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.action}-{key.label}")
def test_each_key_of_the_table_does_something(key):
    assert set(key.screens) <= {*TABLE, "plan"}
    if key.action not in CHANGING and key.screens != ("plan",):
        module = import_module(f"rmqctl.console.{key.module or 'program.actions'}")
        assert callable(getattr(module, f"do_{key.action}"))


def palette_of(console):
    """The lines of the palette by their label and words."""
    return {(entry.label, entry.text): entry for entry in console.app.overlay._all}


@pytest.mark.slow
def test_the_palette_has_every_action_with_its_key_and_why_it_is_off(stocked):
    async def steps(console):
        await console.read()
        await console.press("ctrl+p")
        found = palette_of(console)
        assert set(found) == {
            *((key.label, key.help) for key in KEYS if key.action != "palette"),
            *((f":{word.word}", word.help) for word in WORDS),
        }
        off = {entry.label: entry.off for entry in found.values()}
        assert off["j"] == ""
        assert off["r"] == "read only (:write s)"
        assert off["R"] == "on dlqs, dlq, letter"
        assert off["C"] == "on health"
        assert off["["] == "no screen was shown before"
        assert off["x"] == "nothing is read now that can be stopped"
        await console.type("reset offsets")
        assert "r        reset offsets..." in console.text()
        assert "off: read only (:write s)" in console.text()
        assert "1 of" in console.text()
        await console.press("enter")
        assert "= rmqctl offset reset billing" in console.text()
        assert "read only (:write s)" in console.text()

    drive(stocked, steps, "groups", size=(100, 30))


@pytest.mark.slow
def test_the_palette_does_what_is_chosen(stocked):
    async def steps(console):
        await console.read()
        await console.press("ctrl+p")
        await console.type("q")
        assert "of " in console.text()
        await console.press("escape")
        assert "action: q" not in console.text()
        await console.press("ctrl+p")
        await console.type("pause, or")
        await console.press("enter")
        assert console.app.paused
        await console.press("ctrl+p")
        await console.type("check the store")
        await console.press("enter")
        assert console.app.notice == "C is off: on health"
        await console.press("ctrl+p")
        await console.type(":where")
        await console.press("enter")
        assert console.app.prompt.text == "where "
        await console.type("lag > 0")
        await console.press("enter")
        assert console.app.pane.table.view.where == "lag > 0"
        await console.press("ctrl+p", "down", "down", "up")
        assert isinstance(console.app.overlay, Palette)
        assert console.app.overlay.cursor == 1
        await console.type("no such thing")
        await console.press("enter")
        assert "0 of" in console.text()

    drive(stocked, steps, "groups")


@pytest.mark.slow
def test_with_changes_on_the_palette_opens_a_plan(stocked):
    async def steps(console):
        await console.read()
        console.app.desk.writes = True
        await console.press("ctrl+p")
        await console.type("reset off")
        assert "off: " not in console.text().splitlines()[4]
        await console.press("enter")
        assert console.app.desk.sheet is not None

    drive(stocked, steps, "groups")


@pytest.mark.feature(152)
@pytest.mark.slow
def test_columns_are_those_of_the_command(stocked):
    async def steps(console):
        await console.read()
        await console.type(":columns lag,group")
        await console.press("enter")
        assert console.lines()[3].split() == ["LAG", "GROUP"]
        command = console.app.pane.command()
        assert command == "rmqctl lag show --sort=-lag --columns lag,group"
        assert json_rows(stocked, command) == [{"lag": 20, "group": "billing"}]
        await console.type(":columns nothing")
        await console.press("enter")
        assert "--columns: 'nothing' is not a field" in console.text()
        assert console.lines()[3].split() == ["LAG", "GROUP"]
        await console.press("w")
        assert "--columns" not in console.app.pane.command()
        await console.press("w")
        assert console.lines()[3].split() == ["LAG", "GROUP"]
        await console.type(":columns")
        await console.press("enter")
        assert "--columns" not in console.app.pane.command()
        assert "STATUS" in console.lines()[3]

    drive(stocked, steps, "groups")


@pytest.mark.slow
def test_columns_are_chosen_and_ordered_by_key(stocked):
    async def steps(console):
        await console.read()
        pane = console.app.pane
        usual = pane.table.columns()
        await console.press("c")
        assert "[x] group" in console.text()
        await console.press("J")
        assert pane.table.columns()[:2] == [usual[1], usual[0]]
        await console.press("K", "j", "space")
        without = [usual[0], *usual[2:]]
        assert pane.table.columns() == without
        assert pane.command().endswith(f"--columns {','.join(without)}")
        await console.press("enter")
        assert "[x] group" not in console.text()
        assert pane.table.columns() == without
        await console.press("c", "G", "space", "escape")
        assert pane.table.columns() == without
        await console.press("c", "u", "enter")
        assert pane.table.columns() == usual
        assert "--columns" not in console.app.pane.command()
        pane.set_columns(("lag", "group"))
        await console.press("w", "c", "space", "escape")
        assert pane.wide
        assert len(pane.table.columns()) > len(usual)
        await console.press("w")
        assert pane.table.columns() == ["lag", "group"]
        await console.press("c", "u", *["space"] * len(usual))
        assert "one column must be left" in console.text()
        assert len(pane.table.columns()) == 1

    drive(stocked, steps, "groups")


@pytest.mark.slow
def test_what_is_drawn_has_no_columns(stocked):
    async def steps(console):
        await console.read()
        console.app.active = 0
        await console.press("c")
        assert console.app.overlay is None
        assert "this pane has no columns" in console.text()

    drive(stocked, steps, "group", "billing")


@pytest.mark.slow
def test_the_time_between_looks_can_be_set(stocked):
    async def steps(console):
        await console.read()
        await console.type(":every 5s")
        await console.press("enter")
        assert "every 5 s" in console.text()
        await console.type(":every 0s")
        await console.press("enter")
        assert "needs a time above 0" in console.text()
        await console.type(":every 5")
        await console.press("enter")
        assert "'5' has no unit" in console.text()
        assert console.app.every == 5
        await console.type(":every 50ms")
        await console.press("enter")
        run("consume", "orders", "-g", "audit", "-e", "-S", stocked)
        await console.until("audit")

    drive(stocked, steps, "groups")
