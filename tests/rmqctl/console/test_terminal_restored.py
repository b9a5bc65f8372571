"""However the console ends, the terminal is as it was before."""

import os
import re
import signal
import termios
import time
from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.console import terminal

_MODE = re.compile(rb"\x1b\[\?(\d+)([hl])|\x1b\[([<>])\d*u")
ENDED = b"\x1b[?1049l"


def modes_left(raw):
    """The modes of a terminal that differ from those it had, by all bytes it got."""
    found = {"7": True, "25": True}
    for mode, state, kitty in _MODE.findall(raw):
        found[(mode or b"kitty keys").decode()] = (state or kitty) in (b"h", b">")
    usual = {name: name in ("7", "25") for name in found}
    return {name for name in found if found[name] != usual[name]}


def children(pid):
    """The processes that a process has started."""
    return [int(pid) for pid in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid):
    """Whether there is no such process, not even a zombie."""
    return not Path(f"/proc/{pid}").exists()


class Ending:
    """A console on a terminal that is then ended."""

    def __init__(self, console):
        self.console = console
        self.before = termios.tcgetattr(console.child.child_fd)
        assert self.before[3] & termios.ICANON
        console.until("READ ONLY")
        console.until("every 2 s")
        assert termios.tcgetattr(console.child.child_fd) != self.before
        assert {"1049", "25", "7", "2004", "1000", "1006", "kitty keys"} <= modes_left(console.raw)
        self.guards = children(console.child.pid)
        assert len(self.guards) == 1

    def restored(self):
        self.console.until(lambda: ENDED in self.console.raw)
        self.console.until(lambda: all(map(gone, self.guards)))
        while self.console.pump():
            pass
        assert termios.tcgetattr(self.console.child.child_fd) == self.before
        assert modes_left(self.console.raw) == set()


@pytest.fixture
def stocked(store):
    """A store with a topic."""
    run("produce", "orders", stdin=b"1\n")
    return store


KEYS = {"q": 0, "\x03": 0, "\x03\x03": 0, ":q\r": 0}


@pytest.mark.parametrize("keys", KEYS, ids=ascii)
def test_keys_end_it(stocked, keys):
    with terminal(stocked) as console:
        ending = Ending(console)
        console.send(keys)
        assert console.ended() == KEYS[keys]
        ending.restored()


SIGNALS = {
    signal.SIGTERM: 143,
    signal.SIGINT: 130,
    signal.SIGHUP: -signal.SIGHUP,
    signal.SIGKILL: -signal.SIGKILL,
    signal.SIGSEGV: -signal.SIGSEGV,
}


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_ends_it(stocked, number):
    with terminal(stocked) as console:
        ending = Ending(console)
        console.child.kill(number)
        assert console.ended() == SIGNALS[number]
        ending.restored()


def test_the_time_limit_ends_it(stocked):
    with terminal(stocked, "--timeout", "4s") as console:
        ending = Ending(console)
        assert console.ended() == 124
        ending.restored()
        assert "timed out after 4s" in console.text()


HANGS = """
import rmqctl.console.app, time
def hang(app):
    app.notice = "now"
    app.draw()
    time.sleep(60)
rmqctl.console.app.ConsoleApp.do_pause = hang
"""


def again(console, act):
    """Do something until the console has ended."""
    end = time.monotonic() + 20
    while console.child.isalive() and time.monotonic() < end:
        act()
        console.pump()


def test_a_second_signal_ends_a_console_that_hangs(stocked):
    with terminal(stocked, before=HANGS) as console:
        ending = Ending(console)
        console.send("p")
        console.until(" now")
        again(console, lambda: console.child.kill(signal.SIGTERM))
        assert console.ended() == 143
        ending.restored()


def test_ctrl_c_twice_ends_a_console_that_hangs(stocked):
    with terminal(stocked, before=HANGS) as console:
        ending = Ending(console)
        console.send("p")
        console.until(" now")
        again(console, lambda: console.send("\x03"))
        assert console.ended() == 130
        ending.restored()


@pytest.mark.parametrize(("where", "debug"), [("key", False), ("drawing", True), ("prompt", True)])
def test_an_error_of_the_console_ends_it_with_a_sentence(stocked, where, debug):
    broken = {
        "key": "def fail(app): return 1 // 0\nimport rmqctl.console.app as a\n"
        "a.ConsoleApp.do_pause = fail\n",
        "drawing": "import rmqctl.console.panes as p\nshow = p.Pane.mark\n"
        "def fail(pane, *w, **k): return 1 // 0\n"
        "def mark(pane): p.Pane.lines = fail\np.Pane.mark_all = mark\n",
        "prompt": "import rmqctl.console.prompt as p\n"
        "def fail(prompt): return 1 // 0\np.Prompt.line = fail\n",
    }[where]
    with terminal(stocked, *["--debug"] * debug, before=broken) as console:
        ending = Ending(console)
        console.send({"key": "p", "drawing": "*", "prompt": ":"}[where])
        assert console.ended() == 1
        ending.restored()
        printed = console.raw.rpartition(ENDED)[2].decode()
        assert "rmqctl: internal error: ZeroDivisionError" in printed
        assert ("Traceback" in printed and "in fail" in printed) is debug


def test_an_error_of_a_look_is_shown_and_it_goes_on(stocked):
    broken = (
        "import rmqctl.console.reading as r\n"
        "def fail(reader): raise ValueError('no [b]luck[/nope]')\nr.Reader._open = fail\n"
    )
    with terminal(stocked, before=broken) as console:
        ending = Ending(console)
        console.until("! internal error: ValueError: no [b]luck[/nope]")
        console.send("q")
        assert console.ended() == 0
        ending.restored()


def test_an_abort_of_the_process(stocked):
    aborts = "import os, rmqctl.console.app as a\na.ConsoleApp.do_pause = lambda app: os.abort()\n"
    with terminal(stocked, before=aborts) as console:
        ending = Ending(console)
        console.send("p")
        assert console.ended() == -signal.SIGABRT
        ending.restored()


def test_without_its_guard_it_still_ends_well(stocked):
    with terminal(stocked) as console:
        ending = Ending(console)
        os.kill(ending.guards[0], signal.SIGKILL)
        console.send("q")
        assert console.ended() == 0
        ending.restored()
