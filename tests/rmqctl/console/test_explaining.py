"""The meaning of a word, over the panes."""

import pytest

from tests.rmqctl.console.test_messages import complete, stocked
from tests.support.cli import run
from tests.support.console import drive

__all__ = ["stocked"]


@pytest.mark.slow
def test_the_state_of_the_row_is_explained_and_escape_closes_it(stocked):
    run("consume", "orders", "-g", "billing", "-e", "-c", "10")

    async def steps(console):
        await complete(console)
        status = console.app.pane.row().status
        await console.press("exclamation_mark")
        await console.until(f"rmqctl explain {status}")
        for line in run("explain", status).out.splitlines()[:4]:
            assert line.strip()[:60] in console.text()
        await console.press("escape")
        assert "rmqctl explain" not in console.text()
        assert "billing" in console.text()
        await console.press("exclamation_mark")
        await console.until(f"rmqctl explain {status}")
        await console.press("exclamation_mark")
        assert "rmqctl explain" not in console.text()

    drive(stocked, steps, "groups", size=(80, 40))


@pytest.mark.slow
def test_without_a_state_the_column_is_explained_that_the_rows_are_sorted_by(stocked):
    async def steps(console):
        await complete(console)
        await console.press("exclamation_mark")
        await console.until("no word of this row has an explanation")
        await console.type(":sort queue_offset")
        await console.press("enter", "exclamation_mark")
        await console.until("rmqctl explain queue_offset")

    drive(stocked, steps, "messages", "orders")


@pytest.mark.slow
def test_a_long_text_is_scrolled_and_other_keys_close_it(stocked):
    async def steps(console):
        await complete(console)
        await console.type(":explain where")
        await console.press("enter")
        await console.until("rmqctl explain where (esc closes)   lines 1-")
        first = console.lines()[5]
        cursor = console.app.pane.cursor
        await console.press("j")
        assert console.lines()[4] == first
        await console.press("G")
        total = int(console.lines()[3].split(" of ")[1].split()[0])
        assert f"-{total} of {total}" in console.lines()[3]
        assert console.app.pane.cursor == cursor
        await console.press("s")
        assert "rmqctl explain" not in console.text()
        await console.type(":explain stal")
        await console.press("enter")
        await console.until("unknown term 'stal'; did you mean 'STALL'")

    drive(stocked, steps, "messages", "orders")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 15), (140, 40)])
def test_it_fits_the_screen(stocked, size):
    async def steps(console):
        await complete(console)
        await console.type(":explain consent")
        await console.press("enter")
        await console.until("rmqctl explain consent")
        assert len(console.lines()) == size[1]
        assert max(map(len, console.lines())) <= size[0]

    drive(stocked, steps, "topics", size=size)
