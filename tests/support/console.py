"""The console in a test: driven in this process, or the installed program on a pseudo-terminal."""

import asyncio
import json
import os
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pyte

from rmqctl.cli.context import Cli
from rmqctl.console.program.app import ConsoleApp
from rmqctl.console.screens.table import place_named
from rmqctl.console.themes import Theme

from .cli import run

_PATIENCE_S = 30


def drive(store, steps, *words, size=(80, 24), theme="dark", color=True, **given):
    """Run ``await steps(console)`` in a console that begins at ``words`` (default: groups)."""

    async def go():
        cli = Cli()
        cli.remember("store", [str(store)])
        for name, value in given.items():
            cli.remember(name, value)
        app = ConsoleApp(cli, place_named(words or ("groups",)), 0.2, Theme(theme, color=color))
        async with app.run_test(size=size) as pilot:
            try:
                return await steps(Driven(app, pilot))
            finally:
                for reader in filter(None, (*app.readers.values(), app.walker)):
                    await asyncio.to_thread(reader.end, 10)

    return asyncio.run(go())


class Driven:
    """A console in this process: keys, and what is shown."""

    def __init__(self, app, pilot):
        self.app = app
        self.pilot = pilot

    async def press(self, *keys):
        """Press keys, by Textual's names; returns once they have been handled."""
        await self.pilot.press(*keys)

    async def type(self, text):
        """Type a text."""
        for letter in text:
            await self.pilot.press({" ": "space", "'": "apostrophe"}.get(letter, letter))

    def lines(self):
        """The lines of the screen, without blanks at their ends."""
        size = self.app.size
        return [
            "".join(span.text for span in line).rstrip()
            for line in self.app.lines(size.width, size.height)
        ]

    def text(self):
        """The whole screen."""
        return "\n".join(self.lines())

    def words(self):
        """The whole screen without the ends of its lines: sentences are wrapped."""
        return " ".join(self.text().split())

    async def until(self, what):
        """Wait until a text stands on the screen, or a condition is true."""
        end = time.monotonic() + _PATIENCE_S
        while not (what() if callable(what) else what in self.text()):
            assert time.monotonic() < end, f"waited for {what!r}:\n{self.text()}"
            await self.pilot.pause(0.01)

    async def read(self):
        """Wait until every pane has been read."""
        panes = self.app.panes
        await self.until(
            lambda: all(
                panes[n].error
                or panes[n].empty
                or (panes[n].as_of and not panes[n].loading)
                or (panes[n].look.name == "follow" and panes[n].took_ms)
                for n in self.app.seen()
            )
        )


def json_rows(store, command):
    """The rows that a command of the screen prints with ``-o json``."""
    import shlex

    return json.loads(run("-S", store, "-o", "json", *shlex.split(command)[1:]).out)


class Terminal:
    """The installed program on a pseudo-terminal, and a screen that shows its bytes."""

    def __init__(self, store, *words, size=(24, 80), env=None, before="", program=None, cwd=None):
        """``before``: Python that runs in the program's process first, to break something.

        ``program``: what is run instead, such as a shell.
        """
        self.size = size
        self.raw = b""
        self._screen = pyte.Screen(size[1], size[0])
        self._stream = pyte.ByteStream(self._screen)
        rmqctl = [str(Path(sys.executable).with_name("rmqctl"))]
        if before:
            rmqctl = [sys.executable, "-c", f"{before}\nfrom rmqctl.app import run\nrun()"]
        program = program or [*rmqctl, "console", "-S", str(store), *words]
        self.child = pexpect.spawn(
            program[0],
            program[1:],
            dimensions=size,
            env={**os.environ, "TERM": "xterm-256color", **(env or {})},
            cwd=cwd,
        )

    def pump(self, seconds=0.05):
        """Read what has come within so long."""
        try:
            data = self.child.read_nonblocking(1 << 16, timeout=seconds)
        except (pexpect.TIMEOUT, pexpect.EOF):
            return b""
        self.raw += data
        self._stream.feed(re.sub(rb"\x1b\[[<>=][\d;]*u|\x1b\[\?[\d;]*\$p", b"", data))
        return data

    def text(self):
        """The whole screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def cells(self, line):
        """The cells of a line, with their colors."""
        row = self._screen.buffer[line]
        return [row[column] for column in range(self._screen.columns)]

    def words(self):
        """The whole screen without the ends of its lines."""
        return " ".join(self.text().split())

    def until(self, what):
        """Wait until a text stands on the screen, or a condition is true."""
        end = time.monotonic() + _PATIENCE_S
        while not (what() if callable(what) else what in self.text()):
            assert time.monotonic() < end, f"waited for {what!r}:\n{self.text()}"
            self.pump()

    def send(self, keys):
        """Type keys."""
        self.child.send(keys)

    def resize(self, rows, columns):
        """Change the size of the terminal."""
        self._screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def ended(self):
        """Wait for the end; the exit code, or minus the signal."""
        end = time.monotonic() + _PATIENCE_S
        while self.child.isalive():
            assert time.monotonic() < end, self.text()
            self.pump()
        while self.pump():
            pass
        code = self.child.exitstatus
        return -self.child.signalstatus if code is None else code


@contextmanager
def terminal(store, *words, **how):
    """The installed program on a pseudo-terminal; it is killed if the test leaves it."""
    found = Terminal(store, *words, **how)
    try:
        yield found
    finally:
        found.child.close(force=True)
