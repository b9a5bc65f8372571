"""What is malformed is said, and the console goes on."""

import pytest

from rmqctl.console.looks.look import Place
from tests.rmqctl.console.test_letters_read import rich
from tests.rmqctl.console.test_messages import stocked
from tests.support.console import drive
from tests.support.rich_store import GROUP

__all__ = ["rich", "stocked"]


@pytest.mark.slow
def test_twice_as_many_of_a_count_that_is_no_number_is_refused(stocked):
    async def steps(console):
        await console.until("'abc' is not a number of messages")
        await console.press("m")
        assert console.app.notice == "'abc' is not a number of messages"
        assert console.app.failure is None

    drive(stocked, steps, "messages", "orders", "*", "5", "abc")


@pytest.mark.slow
def test_the_palette_says_that_the_setting_for_changes_is_malformed(stocked, monkeypatch):
    monkeypatch.setenv("RMQCTL_CONSOLE_WRITE", "nver")

    async def steps(console):
        await console.read()
        await console.press("ctrl+p")
        await console.type("undo")
        await console.until("console_write: 'nver' is not one of ask, never")

    drive(stocked, steps, "audit", size=(160, 40))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (Place("change", ("abc",)), "'abc' is not the number of a change"),
        (Place("change", ("\u0663",)), "'\u0663' is not the number of a change"),
        (Place("message", ("orders", "0", "\u00b2")), "give a queue and a queue offset"),
    ],
    ids=lambda value: value.names[-1] if isinstance(value, Place) else None,
)
def test_a_place_with_a_number_that_is_none_is_refused(stocked, place, sentence):
    async def steps(console):
        console.app.go(place)
        await console.until(sentence)
        await console.press("u")
        assert "invalid literal" not in console.app.notice

    drive(stocked, steps)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["host", "age", "shape", "nonsense"])
def test_dead_letters_are_not_counted_by_what_no_condition_selects(rich, by):
    async def steps(console):
        await console.until(f"BY is one of reason, tag, key, hour, not '{by}'")
        counts, letters = console.app.panes[:2]
        assert counts.table.total == letters.table.total == 0
        await console.press("R")
        assert console.app.desk.command is None
        await console.press("b")
        await console.until(lambda: console.app.panes[1].table.total > 0)

    drive(rich, steps, "dlq", GROUP, by, size=(140, 40))
