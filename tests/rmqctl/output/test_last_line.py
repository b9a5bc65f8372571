"""A bar shares its terminal with what is printed beside it: seen on a screen (pyte)."""

import io
import logging
import shlex
import sys
from pathlib import Path

import pyte
import pytest

from rmqctl.cli.context import Cli
from rmqctl.cli.logs import show_logs
from rmqctl.output.last_line import LastLine
from tests.support.cli import run
from tests.support.terminal import on_a_terminal

BETWEEN_BARS = """
import sys
from rmqctl.app import main
from rmqctl.output.last_line import LAST_LINE
LAST_LINE.show("a bar: 15 messages, 15/s")
code = main(sys.argv[1:])
LAST_LINE.show("a bar: 16 messages, 16/s")
sys.exit(code)
"""
BAR = "a bar: 16 messages, 16/s"
FAILS = shlex.quote('read body; echo "no stock for $body" >&2; exit 1')


LONG_BARS = """
from rmqctl.cli.progress import Progress
now = 0
with Progress("search", "bytes", "bar", 1 << 34, clock=lambda: now) as progress:
    for now in range(1, 4):
        progress.advance(1 << 30, 1 << 30)
"""
LONG_TEXT = "search: 3,221,225,472 bytes, 1,073,741,824/s,  19%, 13s left"


def shown_of_bars(columns: int) -> list[str]:
    """The lines of a terminal on which a long bar was drawn three times."""
    shown = on_a_terminal(["-P", "-c", LONG_BARS], columns=columns)
    screen = pyte.Screen(columns, 9)
    pyte.Stream(screen).feed(shown.removesuffix("\r\x1b[K"))
    return [line.rstrip() for line in screen.display if line.strip()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (100, f"[####....................] {LONG_TEXT}"),
        (80, LONG_TEXT),
        (40, "search: 3,221,225,472 bytes, 1,073,741,"),
        (12, "search: 3,2"),
    ],
)
def test_a_bar_is_one_line(columns, line):
    (shown,) = shown_of_bars(columns)
    assert shown == line


def screen_of(*words: object, elsewhere: Path | None = None) -> list[str]:
    """What stands on a terminal on which bars were shown before and after a command."""
    if elsewhere is None:
        shown = on_a_terminal(["-P", "-c", BETWEEN_BARS, *words], columns=100)
    else:
        with elsewhere.open("wb") as stdout:
            shown = on_a_terminal(["-P", "-c", BETWEEN_BARS, *words], columns=100, stdout=stdout)
    screen = pyte.Screen(100, 20)
    pyte.Stream(screen).feed(shown.replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display if line.strip()]


@pytest.fixture
def with_orders(store):
    assert run("produce", "orders", stdin=b"order 7\norder 8\n").code == 0
    return store


@pytest.mark.slow
def test_words_of_a_program_that_consumes(with_orders, tmp_path):
    """It once was "consume: 15 messages, 15/sno stock for order 7"."""
    words = ["consume", "orders", "-g", "shop", "--from-where", "first", "-c", "2"]
    words += [
        "--exec",
        f"sh -c {FAILS}",
    ]
    first, second, *rest = screen_of(*words, elsewhere=tmp_path / "out")
    assert {first, second} == {"no stock for order 7", "no stock for order 8"}
    said = "rmqctl: 2 of 2 messages failed; they will be retried, or are dead letters"
    assert rest == [said, BAR]


@pytest.mark.slow
def test_data(with_orders):
    assert sorted(screen_of("consume", "orders", "-e", "--from", "-1d")) == [
        BAR,
        "order 7",
        "order 8",
    ]


@pytest.mark.slow
def test_data_without_line_ends_are_not_wiped(with_orders):
    (line,) = screen_of("consume", "orders", "-e", "--from", "-1d", "--delimiter", "; ")
    assert sorted(line.removesuffix(";").split("; ")) == ["order 7", "order 8"]


@pytest.mark.slow
def test_what_is_logged(with_orders):
    words = ["consume", "orders", "-g", "shop", "--from-where", "first", "-c", "2"]
    words += ["--exec", "false", "--verbose"]
    lines = screen_of(*words)
    assert [line for line in lines if BAR[:5] in line] == [BAR]
    assert any(line.startswith("rmqctl: WARNING") for line in lines)


def test_an_open_line_is_left_alone_and_a_bar_comes_behind_it():
    out = io.StringIO()
    line = LastLine(out)
    line.beside(lambda: out.write("half a "), ends_line=False)
    line.show("a bar")
    line.clear()
    assert out.getvalue() == "half a "
    line.beside(lambda: out.write("line\n"), ends_line=True)
    line.show("a bar")
    assert out.getvalue() == "half a line\n\r\x1b[Ka bar"


class NoReader(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_log_without_a_reader_stops_nothing(monkeypatch):
    cli = Cli({})
    cli.remember("verbose", True)
    logger = logging.getLogger("rmqctl")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logger.level)
    monkeypatch.setattr(sys, "stderr", NoReader())
    show_logs(cli)
    logger.warning("a line")
