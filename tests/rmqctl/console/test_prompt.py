"""What is typed is seen, however long it is and however narrow the screen."""

import pytest

from rmqctl.console.drawing import Role, cut_line, width_of
from rmqctl.console.plans.sheet import Stage
from rmqctl.console.prompt import Prompt
from rmqctl.output.cells import ELLIPSIS
from tests.rmqctl.console.test_changes import turn_on
from tests.support.cli import run
from tests.support.console import drive

GROUP = "group-of-" + "x" * 28 + "-40"
WIDE = "\u4f60"
"""A letter of two cells."""


def shown(prompt, width):
    """The text of a line as it is on the screen; the cursor in brackets."""
    line = cut_line(prompt.line(width), width)
    assert width_of(line) == width
    texts = [f"[{span.text}]" if span.role is Role.CURSOR else span.text for span in line]
    return "".join(texts).rstrip()


def test_the_cursor_is_in_the_line_whatever_its_length():
    prompt = Prompt(":", "abcdef")
    assert shown(prompt, 9) == " :abcdef[ ]"
    assert shown(prompt, 8) == f" :{ELLIPSIS}cdef[ ]"
    prompt.key("left", None)
    assert shown(prompt, 8) == " :abcde[f]"
    prompt.key("home", None)
    assert shown(prompt, 8) == " :[a]bcdef"
    assert shown(prompt, 6) == f" :[a]bc{ELLIPSIS}"
    assert shown(Prompt(":", WIDE * 5), 9) == f" :{ELLIPSIS}{WIDE * 2}[ ]"


@pytest.fixture
def stocked(store):
    """A topic, and a group whose name has 40 letters."""
    run("produce", "orders", stdin=b"1\n")
    run("consume", "orders", "-g", GROUP, "-e")
    return store


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
def test_the_end_of_what_is_typed_is_on_the_screen(stocked, size):
    async def steps(console):
        await console.read()
        await console.press("colon", *"where", "space", *"lag", "space", *"x" * 90, *"end")
        assert console.lines()[-1].endswith("xend")
        await console.press("escape", "ctrl+p", *"z" * 90, *"end")
        assert "zend" in console.lines()[3]
        await console.press("escape")

    drive(stocked, steps, "groups", size=size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
def test_what_is_typed_into_a_plan_is_on_the_screen(stocked, size):
    async def steps(console):
        desk = console.app.desk
        await turn_on(console)
        await console.press("r", *"w" * 90, *"topic")
        assert "wtopic" in console.text()
        await console.press("ctrl+u", *"orders", "enter", *"earliest", "enter")
        await console.until(lambda: desk.sheet.stage is Stage.PLAN)
        await console.press("enter", *"v" * 90, *"why")
        assert "vwhy" in console.text()
        await console.press("enter")
        await console.type(GROUP[:-1])
        assert any(line.strip() == GROUP[:-1] for line in console.lines())
        assert f"Type {GROUP}" in console.words()
        await console.type(GROUP[-1])
        await console.press("enter")
        await console.until(lambda: desk.sheet.stage is Stage.DONE)

    drive(stocked, steps, "groups", size=size)
