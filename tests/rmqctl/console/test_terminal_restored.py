"""However the console ends, the terminal is as it was before."""

import os
import re
import signal
import sys
import termios
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from rmqctl.console import guard
from tests.support.cli import run
from tests.support.console import terminal
from tests.support.examples import one_in

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

    def __init__(self, console, state="READ ONLY"):
        self.console = console
        self.before = termios.tcgetattr(console.child.child_fd)
        assert self.before[3] & termios.ICANON
        console.until(state)
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


@pytest.mark.parametrize("keys", one_in(2, KEYS), ids=ascii)
@pytest.mark.slow
def test_keys_end_it(stocked, keys):
    with terminal(stocked, "groups") as console:
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


@pytest.mark.parametrize("number", one_in(3, SIGNALS), ids=lambda number: number.name)
@pytest.mark.slow
def test_a_signal_ends_it(stocked, number):
    with terminal(stocked, "groups") as console:
        ending = Ending(console)
        console.child.kill(number)
        assert console.ended() == SIGNALS[number]
        ending.restored()


@pytest.mark.slow
def test_the_time_limit_ends_it(stocked):
    with terminal(stocked, "groups", "--timeout", "4s") as console:
        ending = Ending(console)
        assert console.ended() == 124
        ending.restored()
        assert "timed out after 4s" in console.text()


HANGS = """
import rmqctl.console.program.actions, time
def hang(app):
    app.notice = "now"
    app.draw()
    time.sleep(60)
rmqctl.console.program.actions.do_pause = hang
"""


def again(console, act):
    """Do something until the console has ended."""
    end = time.monotonic() + 20
    while console.child.isalive() and time.monotonic() < end:
        act()
        console.pump()


@pytest.mark.slow
def test_a_second_signal_ends_a_console_that_hangs(stocked):
    with terminal(stocked, "groups", before=HANGS) as console:
        ending = Ending(console)
        console.send("p")
        console.until(" now")
        again(console, lambda: console.child.kill(signal.SIGTERM))
        assert console.ended() == 143
        ending.restored()


@pytest.mark.slow
def test_ctrl_c_twice_ends_a_console_that_hangs(stocked):
    with terminal(stocked, "groups", before=HANGS) as console:
        ending = Ending(console)
        console.send("p")
        console.until(" now")
        again(console, lambda: console.send("\x03"))
        assert console.ended() == 130
        ending.restored()


@pytest.mark.parametrize(
    ("where", "debug"),
    [
        ("key", False),
        ("drawing", True),
        ("drawing later", True),
        pytest.param("prompt", True, marks=pytest.mark.long),
    ],
)
@pytest.mark.slow
def test_an_error_of_the_console_ends_it_with_a_sentence(stocked, where, debug):
    broken = {
        "key": "def fail(app): return 1 // 0\nimport rmqctl.console.program.actions as b\n"
        "b.do_pause = fail\n",
        "drawing": "import rmqctl.console.panes as p\nshow = p.Pane.mark\n"
        "def fail(pane, *w, **k): return 1 // 0\n"
        "def mark(pane): p.Pane.lines = fail\np.Pane.mark_all = mark\n",
        "drawing later": "import rmqctl.console.program.app as b\nb._TOGETHER_S = 1\n"
        "later = b.ConsoleApp._draw_later\ndef fail(): return 1 // 0\n"
        "def broken(app):\n    app.frame_lines = fail\n    later(app)\n"
        "b.ConsoleApp._draw_later = broken\n",
        "prompt": "import rmqctl.console.prompt as p\n"
        "def fail(prompt, width): return 1 // 0\np.Prompt.line = fail\n",
    }[where]
    with terminal(stocked, "groups", *["--debug"] * debug, before=broken) as console:
        ending = Ending(console)
        console.send({"key": "p", "drawing": "*", "drawing later": "", "prompt": ":"}[where])
        assert console.ended() == 1
        ending.restored()
        printed = console.raw.rpartition(ENDED)[2].decode()
        assert "rmqctl: internal error: ZeroDivisionError" in printed
        assert ("Traceback" in printed and "in fail" in printed) is debug


OUTLIVED = {
    "look": (
        "import rmqctl.console.opened as r\n"
        "def fail(reader): raise ValueError('no [b]luck[/nope]')\nr.OpenedStore.broker = fail\n",
        "",
    ),
    "plan": (
        "import rmqctl.admin.offsets.reset_change as r\n"
        "def fail(*given, **named): raise ValueError('no [b]luck[/nope]')\nr.reset = fail\n",
        "r\rearliest\r",
    ),
    "change": (
        "import rmqctl.admin.offsets.reset_change as r\nreset = r.reset\n"
        "def fail(*given): raise ValueError('no [b]luck[/nope]')\n"
        "def broken(*given, **named):\n"
        "    change = reset(*given, **named)\n    change.apply = fail\n    return change\n"
        "r.reset = broken\n",
        "r\rearliest\r",
    ),
}


@pytest.mark.parametrize(
    ("where", "debug"),
    [
        ("look", False),
        pytest.param("look", True, marks=pytest.mark.long),
        pytest.param("plan", True, marks=pytest.mark.long),
        ("change", True),
    ],
)
@pytest.mark.slow
def test_an_error_that_it_outlives_is_shown_and_traced_at_the_end(stocked, where, debug):
    broken, keys = OUTLIVED[where]
    run("consume", "orders", "-g", "billing", "-e", "-S", stocked)
    with terminal(stocked, "groups", "--write", *["--debug"] * debug, before=broken) as console:
        ending = Ending(console, "CHANGES ON")
        if keys:
            console.until("billing ")
            console.send(keys)
        if where == "change":
            console.until("Type billing")
            console.send("\rwhy\rbilling\r")
            console.until("it failed, perhaps halfway")
        console.until(lambda: "internal error: ValueError: no [b]luck[/nope]" in console.words())
        if where == "plan":
            console.send("\x03")
            console.until("GROUP")
        console.send("q")
        assert console.ended() == 0
        ending.restored()
        printed = console.raw.rpartition(ENDED)[2].decode()
        assert printed.count("Traceback") == debug
        assert ("in fail" in printed) is debug


@pytest.mark.parametrize("thread", one_in(2, ["console-reader", "console-keys", "console-explain"]))
@pytest.mark.slow
def test_a_thread_that_fails_ends_it_with_a_sentence(stocked, thread):
    broken = (
        "import threading\nbefore = threading.Thread.run\n"
        "def fail(thread):\n"
        f"    if thread.name == {thread!r}: 1 // 0\n"
        "    before(thread)\n"
        "threading.Thread.run = fail\n"
    )
    with terminal(stocked, "groups", before=broken) as console:
        console.until(lambda: b"1049h" in console.raw)
        if thread == "console-explain":
            console.until("READ ONLY")
            console.send("!")
        assert console.ended() == 1
        printed = console.raw.rpartition(ENDED)[2].decode()
        assert "rmqctl: internal error: ZeroDivisionError" in printed
        assert "Traceback" not in printed
        assert modes_left(console.raw) == set()


@pytest.mark.slow
def test_an_abort_of_the_process(stocked):
    aborts = "import os, rmqctl.console.program.actions as a\na.do_pause = lambda app: os.abort()\n"
    with terminal(stocked, "groups", before=aborts) as console:
        ending = Ending(console)
        console.send("p")
        assert console.ended() == -signal.SIGABRT
        ending.restored()


@pytest.mark.slow
def test_without_its_guard_it_still_ends_well(stocked):
    with terminal(stocked, "groups") as console:
        ending = Ending(console)
        os.kill(ending.guards[0], signal.SIGKILL)
        console.send("q")
        assert console.ended() == 0
        ending.restored()


class Shell:
    """A console that was started by a shell on the same terminal."""

    def __init__(self, console, store, program):
        self.console = console
        console.send(f"PS1='$((1+1))READY ' && stty -g > {store}.before\r")
        self.prompt()
        console.send(f"{program} console groups -S {store}\r")
        console.until("READ ONLY")
        console.until("every 2 s")
        self.store = store

    def prompt(self):
        self.console.until(lambda: self.console.raw.rstrip().endswith(b"2READY"))

    def comes_back(self):
        """Continue the console; it draws everything anew."""
        before = len(self.console.raw)
        self.console.send("fg\r")
        for text in (b"READ ONLY", b"GROUP", b"= rmqctl lag show"):
            self.console.until(lambda text=text: text in self.console.raw[before:])

    def shows_its_prompt(self, guards):
        """Wait until the guards have ended, and the shell's prompt stands on the main screen."""
        self.console.until(lambda: all(map(gone, guards)))
        self.console.until(lambda: ENDED in self.console.raw)
        self.console.until(lambda: b"2READY" in self.console.raw.rpartition(ENDED)[2])

    def job(self):
        """The pid of the console."""
        return next(iter(children(self.console.child.pid)))

    def restored(self):
        """Whether a line that is typed is echoed once, run, and finds the terminal as before."""
        self.prompt()
        before = len(self.console.raw)
        self.console.send(f"stty -g | cmp - {self.store}.before && echo sa''me\r")
        self.console.until(lambda: re.search(rb"[\r\n]same\r\n", self.console.raw[before:]))
        self.prompt()
        assert self.console.raw.rpartition(ENDED)[2].count(b"&& echo") == 1
        assert modes_left(self.console.raw) - {"2004"} == set()  # the shell's own


@contextmanager
def shell(store, program=None):
    """A shell that has started a console."""
    bash = ["bash", "--norc", "--noprofile", "-i"]
    with terminal(store, program=bash, env={"HISTFILE": "/dev/null"}) as console:
        yield Shell(console, store, program or Path(sys.executable).with_name("rmqctl"))


@pytest.mark.slow
def test_suspended_it_gives_the_terminal_back_and_returns_whole(stocked):
    with shell(stocked) as job:
        console = job.console
        for send in (lambda: console.send("\x1a"), lambda: os.kill(job.job(), signal.SIGTSTP)):
            send()
            console.until(lambda: b"Stopped" in console.raw.rpartition(ENDED)[2])
            job.restored()
            job.comes_back()
            assert "1049" in modes_left(console.raw)
        console.send("q")
        job.restored()


OVER_THE_PANES = {
    "a plan": (b":health\r:write s\rM", b"s > repair"),
    "a line": (b":zzz", b"zzz"),
    "the palette": (b"\x10", b"enter does it"),
    "the list of columns": (b"c", b"show or hide"),
    "a text": (b":explain where\r", b"rmqctl explain where (esc"),
    "the help": (b"?", b"Keys of this screen"),
}


@pytest.mark.slow
@pytest.mark.parametrize("over", OVER_THE_PANES)
def test_it_is_suspended_whatever_is_over_the_panes(stocked, over):
    keys, shown = OVER_THE_PANES[over]
    with shell(stocked) as job:
        console = job.console
        before = len(console.raw)
        console.send(keys)
        console.until(shown.decode())
        console.send("\x1a")
        console.until(lambda: b"Stopped" in console.raw[before:])
        console.send("fg\r")
        console.until(lambda: shown in console.raw.rpartition(b"fg\r\n")[2])


@pytest.mark.slow
def test_a_suspended_console_that_is_killed_writes_nothing(stocked):
    with shell(stocked) as job:
        console = job.console
        console.send("\x1a")
        console.until(lambda: b"Stopped" in console.raw.rpartition(ENDED)[2])
        job.prompt()
        guards = children(job.job())
        os.kill(job.job(), signal.SIGKILL)
        console.until(lambda: all(map(gone, guards)))
        while console.pump():
            pass
        assert console.raw.count(ENDED) == 1
        job.restored()


@pytest.mark.slow
def test_stopped_and_continued_by_signals_it_draws_all_again(stocked):
    with shell(stocked) as job:
        console = job.console
        os.kill(job.job(), signal.SIGSTOP)
        console.until(lambda: b"Stopped" in console.raw)
        job.comes_back()
        console.send("q")
        job.restored()


@pytest.mark.parametrize("number", one_in(2, [signal.SIGKILL, signal.SIGABRT, signal.SIGTERM]))
@pytest.mark.slow
def test_the_shell_goes_on_after_a_console_that_was_killed(stocked, number):
    with shell(stocked) as job:
        guards = children(job.job())
        os.kill(job.job(), number)
        job.shows_its_prompt(guards)
        job.restored()


LATE = """
import pathlib, time
import rmqctl.console.guard as guard
restore = guard._restore
def late(*given):
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.01)
    restore(*given)
guard._restore = late
from rmqctl.app import run
run()
"""
"""A program whose guard waits for a file before it restores the terminal."""


@pytest.mark.slow
def test_a_shell_that_is_quicker_than_the_guard_writes_its_prompt_again(stocked, tmp_path):
    late, go = tmp_path / "late.py", tmp_path / "go"
    late.write_text(LATE.format(go=str(go)))
    with shell(stocked, f"{sys.executable} {late}") as job:
        console = job.console
        guards = children(job.job())
        before = console.raw.count(b"2READY")
        os.kill(job.job(), signal.SIGKILL)
        console.until(lambda: console.raw.count(b"2READY") > before)  # on the screen that goes
        assert ENDED not in console.raw
        go.touch()
        job.shows_its_prompt(guards)
        assert b"rmqctl: the console was killed" in console.raw.rpartition(ENDED)[2]
        job.restored()


@pytest.mark.parametrize("shell_first", [False, True])
def test_a_shell_that_is_quicker_than_the_guard_keeps_its_attributes_and_a_line_says_so(
    shell_first,
):
    ends = os.openpty()
    shells, terminal_end = ends
    try:
        before = termios.tcgetattr(terminal_end)
        ours = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
        termios.tcsetattr(terminal_end, termios.TCSANOW, ours)
        now = termios.tcgetattr(terminal_end)
        if shell_first:
            now[3] ^= termios.ISIG
            termios.tcsetattr(terminal_end, termios.TCSANOW, now)
        guard._restore(terminal_end, b"all modes off", before, ours)
        left = now if shell_first else before
        assert termios.tcgetattr(terminal_end) == left
        os.write(terminal_end, b"that is all")
        written = b""
        while not written.endswith(b"that is all"):  # it may come in parts
            written += os.read(shells, 1000)
        assert written.startswith(b"all modes off")
        assert (b"the console was killed; Enter shows the prompt" in written) is shell_first
    finally:
        for end in ends:
            os.close(end)


NO_TERMINAL = {
    "no-input": "rmqctl console < /dev/null",
    "no-output": "rmqctl console > out",
    "dumb": "TERM=dumb rmqctl console",
    "unset": "env -u TERM rmqctl console",
    "empty": "TERM= rmqctl console",
}


@pytest.mark.parametrize("line", NO_TERMINAL.values(), ids=NO_TERMINAL)
@pytest.mark.slow
def test_without_a_terminal_it_says_what_to_use(stocked, tmp_path, line):
    program = Path(sys.executable).with_name("rmqctl")
    line = f"cd {tmp_path} && {line.replace('rmqctl', f'{program} -S {stocked}')}"
    with terminal(stocked, program=["sh", "-c", line]) as console:
        assert console.ended() == 2
        assert b"\x1b" not in console.raw
        assert console.raw.count(b"\n") == 1
        assert b"rmqctl: the console needs a terminal" in console.raw
        assert b"lag watch" in console.raw
