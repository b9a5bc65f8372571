"""When the screen is drawn: looks that end one after the other are drawn together."""

from shutil import copytree

import pytest

from rmqctl.console.program import app as program
from rmqctl.console.program.app import ConsoleApp
from tests.support.cli import run
from tests.support.console import drive


def counted(monkeypatch, name):
    """Count the calls of a method of the application."""
    calls, method = [], getattr(ConsoleApp, name)

    def count(app, *given):
        calls.append(given)
        return method(app, *given)

    monkeypatch.setattr(ConsoleApp, name, count)
    return calls


@pytest.mark.slow
def test_looks_that_end_together_are_drawn_once_and_keys_at_once(store, monkeypatch):
    run("produce", "orders", stdin=b"1\n")
    monkeypatch.setattr(program, "_TOGETHER_S", 60)
    draws, ticks, batches = (counted(monkeypatch, name) for name in ("draw", "_tick", "_take"))

    async def steps(console):
        await console.read()
        await console.until(lambda: len(batches) >= len(ticks) + 20)
        assert len(draws) <= len(ticks) + 2  # the screen is entered, and drawn for its size
        before, seen = len(draws), len(ticks)
        await console.press("question_mark")
        assert before < len(draws) <= before + 1 + len(ticks) - seen

    drive(store, steps, "overview", size=(140, 40))


@pytest.mark.slow
def test_the_first_frame_after_a_look_has_the_notes_that_no_pane_has_room_for(
    store, tmp_path, monkeypatch
):
    run("produce", "orders", stdin=b"1\n")
    run("consume", "orders", "-g", "billing", "-e", "-c", "1")
    damaged = copytree(store, tmp_path / "damaged")
    for path in (damaged / "rmqctl").glob("offsets.*"):
        path.unlink()
    (damaged / "config" / "consumerOffset.json").write_bytes(b"{")
    monkeypatch.setattr(program, "_TOGETHER_S", 60)

    async def steps(console):
        await console.read()
        text = console.text()
        assert any(pane.notes_cut and pane.notices for pane in console.app.panes)
        assert "(? shows" in text

    drive(damaged, steps, "group", "billing")
