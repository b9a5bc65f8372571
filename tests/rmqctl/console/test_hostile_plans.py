"""Names, reasons and outcomes of plans never command the terminal; what is copied is exact."""

import base64
import re
import shlex

import pytest
from textual.events import Paste

from rmqctl.console.looks.look import Place
from rmqctl.console.plans.sheet import Stage
from tests.rmqctl.console.test_hostile import (
    LONG,
    NAMES,
    SEQUENCES,
    check_screen,
    hostile,
    printable,
)
from tests.support.console import drive, terminal
from tests.support.examples import one_in
from tests.support.hostile_text import SPECIAL
from tests.support.rich_store import GROUP, GROUPS, TOPIC

__all__ = ["hostile"]
VALID = (GROUPS[1], GROUPS[2])
"""Names that a plan may be made for; it is refused for those that only other programs write."""


def stage(sheet):
    """How far a change is."""
    return sheet.stage


async def step(console, *keys):
    """Press keys, and check the screen."""
    await console.press(*keys)
    check_screen(console)


async def paste(console, text):
    """Paste, and check the screen."""
    console.app.on_paste(Paste(text))
    check_screen(console)


@pytest.mark.parametrize("name", one_in(24, (*VALID, LONG, *NAMES)), ids=lambda n: ascii(n)[:20])
@pytest.mark.slow
def test_each_stage_of_a_plan_is_safe_and_lines_up(hostile, name):
    async def steps(console):
        app = console.app
        app.desk.writes = True
        app.go(Place("group", (name,)))
        await console.read()
        check_screen(console)
        await step(console, "r")
        assert stage(app.desk.sheet) is Stage.QUESTIONS
        await paste(console, name)
        await step(console, "enter")
        await step(console, "ctrl+u")
        await paste(console, "*")
        await step(console, "enter")
        await paste(console, name)
        await step(console, "enter")
        await step(console, "ctrl+u")
        await console.type("earliest")
        await step(console, "enter")
        sheet = app.desk.sheet
        await console.until(lambda: stage(sheet) is not Stage.READING)
        check_screen(console)
        if name not in VALID:
            assert "has characters other than" in sheet.problem or "long" in sheet.problem
            return
        assert stage(sheet) is Stage.PLAN, sheet.problem
        await step(console, "w")
        await step(console, "question_mark", "escape")
        await step(console, "enter")
        for reason in SPECIAL[::4]:
            await paste(console, reason)
            await step(console, "home", "right")
        await step(console, "enter")
        await paste(console, f"{name} ")
        await step(console, "enter")
        assert stage(console.app.desk.sheet) is Stage.NAME
        await step(console, "ctrl+u")
        await paste(console, name)
        await step(console, "enter")
        await console.until(lambda: stage(sheet) is Stage.DONE or sheet.banner)
        check_screen(console)
        assert stage(sheet) is Stage.DONE, sheet.banner
        await step(console, "u")
        await console.until(lambda: stage(sheet) is Stage.PLAN)
        check_screen(console)

    drive(hostile, steps, size=(60, 15) if len(name) % 2 else (80, 24))


@pytest.mark.parametrize("key", one_in(2, ["R", "A", "N", "D"]))
@pytest.mark.slow
def test_plans_of_messages_are_safe_and_line_up(hostile, key):
    screen = "dlq" if key in "RA" else "retries"

    async def steps(console):
        app = console.app
        app.desk.writes = True
        for group in (GROUP, GROUPS[1]):
            app.go(Place(screen, (group,)))
            await console.read()
            if screen == "dlq":
                await console.press("tab")
            await step(console, key)
            sheet = app.desk.sheet
            if key == "R":
                await console.press("ctrl+u")
                await paste(console, SPECIAL[3])
                await step(console, "enter")
                await console.until(lambda sheet=sheet: stage(sheet) is not Stage.READING)
                check_screen(console)
                await console.press("ctrl+u")
                await console.type("retry")
                await step(console, "enter")
            await console.until(lambda sheet=sheet: stage(sheet) is not Stage.READING)
            check_screen(console)
            await step(console, "w", "j")
            app.desk.sheet = None

    drive(hostile, steps)


@pytest.mark.slow
def test_what_a_plan_copies_is_exact_and_its_bytes_are_text(hostile):
    reason = "[/nope] \u202e\u6ce8\u6587 a\u200bb 'x' \"y\" \\ $(id)"
    with terminal(hostile, "group", GROUPS[1], "--write", "--reason", reason) as console:
        console.until("CHANGES ON")
        console.until(TOPIC)
        console.send("r\rearliest\r")
        console.until("Type ")
        console.send("Y")
        console.until(lambda: b"\x1b]52;" in console.raw)
        console.send("\r\x15wrong\r")
        console.until("Type ")
        console.send(f"not {GROUPS[1]}\r")
        console.until("nothing was changed")
        console.send("\x03")
        console.until("= rmqctl lag")
        console.send("q")
        assert console.ended() == 0
    text = console.raw.decode("utf-8", "surrogateescape")
    printable(text, SEQUENCES)
    (data,) = re.findall(r"\x1b\]52;c;(.*?)\x07", text)
    copied = shlex.split(base64.b64decode(data, validate=True).decode())
    assert copied[:6] == ["rmqctl", "-S", str(hostile), "offset", "reset", GROUPS[1]]
    assert copied[copied.index("--reason") + 1] == reason


@pytest.mark.slow
def test_a_name_of_90_000_letters_is_copied_whole(hostile):
    with terminal(hostile, "topics") as console:
        console.until(f"{TOPIC} ")
        console.send("/L\u6f22\r")
        console.until(" 1 of ")
        console.send("y")
        console.until(lambda: re.search(rb"\x1b\]52;c;[^\x07]*\x07", console.raw))
        console.send("q")
        assert console.ended() == 0
    (data,) = re.findall(rb"\x1b\]52;c;(.*?)\x07", console.raw)
    assert base64.b64decode(data, validate=True).decode() == LONG
