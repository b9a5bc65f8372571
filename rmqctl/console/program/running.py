"""Running the application on the terminal until it is ended."""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rmqctl.console.driver import run
from rmqctl.console.faults import threads_fail, tracebacks_at_end
from rmqctl.console.guard import Guard
from rmqctl.console.looks.cycle_search import only_new_objects
from rmqctl.console.looks.look import Place
from rmqctl.console.opened import keep_warnings
from rmqctl.console.painting import Painter
from rmqctl.console.program.app import ConsoleApp
from rmqctl.console.themes import Theme

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

_TURN_S: Final = 0.001
"""Python's own is five times as long. A key takes some turns, one after the other: of the threads
that read it, that take it and draw, and that write the frame."""


@contextlib.contextmanager
def short_turns() -> Iterator[None]:
    """Within the block, a thread that computes gives way sooner to one that waits: so a key is
    answered while rows are read."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_TURN_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_console(
    cli: "Cli",
    place: Place,
    every: float,
    theme: Theme,
    guard: Guard,
    *,
    mouse: bool,
    in_ascii: bool,
    write: bool = False,
) -> int:
    """Run the console until it is ended; returns the exit code."""
    app = ConsoleApp(cli, place, every, theme)
    app.desk.writes, app.in_ascii = write, in_ascii

    def end() -> None:
        app.desk.end()
        for reader in app.readers.values():
            reader.end(2)
        if app.walker is not None:
            app.walker.end(2)

    keep_warnings()
    traced = tracebacks_at_end() if cli.flag("debug") else contextlib.nullcontext()
    with traced, threads_fail(app.fail_from_thread), short_turns(), only_new_objects():
        code = run(app, guard, Painter(theme, ascii_only=in_ascii), mouse=mouse, at_end=end)
    return code if isinstance(code, int) else 0
