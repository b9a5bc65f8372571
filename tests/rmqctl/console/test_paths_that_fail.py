"""Paths that cannot be looked at: a sentence, and the console goes on."""

import pytest

from rmqctl.console.program import typed
from tests.rmqctl.console.test_changes import turn_on
from tests.support.cli import run
from tests.support.console import drive

REMOVED = "the working folder was removed; go to another one, or give absolute paths"
TOO_LONG = "x" * 300


@pytest.fixture
def orders(store):
    """A topic with two messages."""
    run("produce", "orders", stdin=b"1\n2\n")
    return store


@pytest.fixture
def removed(orders, tmp_path, monkeypatch):
    """The same, from a working folder that was removed."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    return orders


@pytest.mark.slow
def test_a_working_folder_that_was_removed_is_said(removed):
    async def steps(console):
        app = console.app
        await console.read()
        for text in ("picture x.svg", "export x.json"):
            app.notice = ""
            typed.carry_out(app, text)
            assert app.notice == REMOVED
        await console.press("ctrl+s")
        assert app.notice == REMOVED
        await console.press("e")
        await console.type("x.json")
        await console.press("enter")
        assert app.notice == REMOVED
        await console.press("space")
        assert console.app.pane.table.marked

    drive(removed, steps, "topics")


@pytest.mark.slow
def test_the_folder_of_a_snapshot_is_asked_for_again(removed):
    async def steps(console):
        await turn_on(console)
        await console.press("B")
        await console.type("copy")
        await console.press("enter")
        sheet = console.app.desk.sheet
        assert sheet is not None
        assert sheet.problem == REMOVED
        await console.type("1")
        assert sheet.problem == ""
        assert sheet.command().endswith("store snapshot --save copy1")

    drive(removed, steps, "health")


@pytest.mark.slow
def test_a_path_that_the_system_refuses_is_said(orders, tmp_path):
    async def steps(console):
        await console.read()
        for text in (f"picture {tmp_path}/{TOO_LONG}/a.svg", f"export {tmp_path}/{TOO_LONG}/a.csv"):
            typed.carry_out(console.app, text)
            await console.until(lambda: console.app.notice != "writing ...")
            assert console.app.notice == f"{tmp_path}/{TOO_LONG}: File name too long"

    drive(orders, steps, "topics")


@pytest.mark.slow
def test_a_copied_command_has_the_store_as_it_was_given(orders, monkeypatch):
    here = orders.with_name("here")
    here.mkdir()
    monkeypatch.chdir(here)

    async def steps(console):
        await console.read()
        await console.press("Y")
        assert f"rmqctl -S {here}/../s topic list" in console.app.notice
        here.rmdir()
        await console.press("Y")
        assert "rmqctl -S ../s topic list" in console.app.notice

    drive("../s", steps, "topics")
