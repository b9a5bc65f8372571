"""What the installed program writes to a terminal: how much, in which colors, in which letters."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from rmqctl.console.shapes import SHAPES
from tests.support.cli import run
from tests.support.console import terminal

SGR = re.compile(rb"\x1b\[([\d;]*)m")
BEGINS, ENDS = b"\x1b[?2026h", b"\x1b[?2026l"
KNOWN = b"\x1b[?2026;2$y"
"""A terminal's answer that it knows the marks around a frame."""


@pytest.fixture
def stocked(store):
    """A topic with messages, and a group behind."""
    run("produce", "orders", stdin=b"".join(b"%d\n" % n for n in range(30)))
    run("consume", "orders", "-g", "billing", "-e", "-c", "10")
    return store


def codes_of(raw):
    """Every code of every SGR sequence."""
    return {int(code or 0) for codes in SGR.findall(raw) for code in codes.split(b";")}


@pytest.mark.parametrize(
    ("words", "env"),
    [
        ([], {"NO_COLOR": "1"}),
        pytest.param(["--no-color"], {"COLORTERM": "truecolor"}, marks=pytest.mark.long),
        ([], {"TERM": "vt220", "COLORTERM": ""}),
        pytest.param(
            ["--theme", "light"], {"NO_COLOR": "1", "TERM": "xterm"}, marks=pytest.mark.long
        ),
    ],
    ids=["NO_COLOR", "--no-color", "vt220", "light"],
)
@pytest.mark.slow
def test_without_color_no_byte_is_of_a_color(stocked, words, env):
    with terminal(stocked, "groups", *words, env=env) as console:
        console.until("billing")
        console.send("j?")
        console.until("Keys of this screen")
        console.send("\x1b")
        console.until("billing")
        console.send("q")
        assert console.ended() == 0
        assert codes_of(console.raw) <= {0, 1, 4, 7}
        assert {1, 7} <= codes_of(console.raw)
        assert b"]10;" not in console.raw
        assert b"]11;" not in console.raw


@pytest.mark.parametrize(
    ("env", "few"),
    [
        ({"TERM": "xterm", "COLORTERM": ""}, True),
        pytest.param({"TERM": "xterm-256color", "COLORTERM": ""}, False, marks=pytest.mark.long),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, False),
    ],
    ids=["16", "256", "truecolor"],
)
@pytest.mark.slow
def test_colors_are_those_that_the_terminal_has(stocked, env, few):
    with terminal(stocked, "groups", env={**env, "NO_COLOR": ""}) as console:
        console.until("billing")
        codes = codes_of(console.raw)
        assert (38 in codes) is not few
        assert (bool(codes & {*range(30, 38), *range(90, 98)})) is few
        console.send("q")
        assert console.ended() == 0


@pytest.mark.slow
def test_ascii_has_no_other_letter(stocked):
    with terminal(stocked, "groups", "--ascii", size=(40, 140)) as console:
        console.until("billing")
        for keys, text in (("\r", "MEMBERS"), (":overview\r", "Overview"), ("?", "Keys of this")):
            console.send(keys)
            console.until(text)
        console.send("q")
        assert console.ended() == 0
        text = console.raw.decode()
        assert not set(text) & SHAPES
        assert text.isascii()


def quiet(console, looks):
    """The bytes of so many looks, each a write of its own."""
    before = len(console.raw)
    frames = console.raw.count(BEGINS)
    console.until(lambda: console.raw.count(ENDS) >= frames + looks)
    return len(console.raw) - before


@pytest.mark.slow
def test_a_look_at_which_nothing_moved_costs_the_clock(stocked):
    with terminal(stocked, "groups", "--every", "1s") as console:
        console.send(KNOWN)
        console.until("billing")
        console.until(lambda: console.raw.count(ENDS) >= 2)
        bytes_of = quiet(console, 5)
        assert bytes_of <= 5 * 100, console.raw[-bytes_of:]
        # A frame stands between marks, whole.
        body = console.raw[console.raw.index(BEGINS) :]
        for frame in body.split(BEGINS)[1:]:
            assert ENDS not in frame[: -len(ENDS)]
        console.send("q")
        assert console.ended() == 0
        assert console.raw.count(BEGINS) <= console.raw.count(ENDS)


@pytest.mark.slow
def test_rows_that_all_move_cost_less_than_ten_kilobytes_a_look(store):
    for n in range(30):
        run("produce", f"topic{n:02d}", stdin=b"1\n")
    with terminal(store, "topics", "--every", "1s") as console:
        console.send(KNOWN)
        console.until("topic05")
        console.until(lambda: console.raw.count(ENDS) >= 2)
        before = len(console.raw)
        for n in range(30):
            run("produce", f"topic{n:02d}", stdin=b"1\n" * 20)
        console.until(lambda: console.text().count(" 21") >= 15)
        frames = console.raw[before:].count(BEGINS)
        assert len(console.raw) - before <= 10_000
        assert max(map(len, console.raw[before:].split(BEGINS))) <= 10_000
        assert frames
        console.send("q")
        assert console.ended() == 0


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace on PATH")
@pytest.mark.slow
def test_a_frame_is_one_write(stocked, tmp_path):
    log = tmp_path / "calls"
    rmqctl = str(Path(sys.executable).with_name("rmqctl"))
    tracer = ["strace", "-f", "-e", "trace=write", "-s", "100000", "-xx", "-o", str(log)]
    program = [*tracer, rmqctl, "console", "-S", str(stocked), "groups", "--every", "1s"]
    with terminal(stocked, program=program) as console:
        console.send(KNOWN)
        console.until("billing")
        console.send(":topics\r")
        console.until("orders")
        quiet(console, 2)
        console.send(":q\r")
        assert console.ended() == 0
    data = [
        bytes.fromhex("".join(text.split("\\x")))
        for text in re.findall(r'write\(\d+, "((?:\\x[0-9a-f]{2})*)"', log.read_text())
    ]
    frames = [written for written in data if BEGINS in written or ENDS in written]
    assert frames.pop().startswith(ENDS), "the last one gives the terminal back"
    assert len(frames) >= 4
    for written in frames:
        assert written.count(BEGINS) == written.count(ENDS) == 1
        assert written.endswith(ENDS)
