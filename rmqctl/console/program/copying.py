"""``y`` and ``Y``: a text to the clipboard of the terminal, or into a file where there is none."""

import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rmqctl.console.faults import sentence_of
from rmqctl.console.program.files import check_file, check_outside
from rmqctl.console.program.pictures import write
from rmqctl.console.terminal import no_clipboard
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from rmqctl.console.program.app import ConsoleApp

SETTING: Final = "console_copy"
WAYS: Final = ("auto", "terminal", "file")


def way_of(cli: "Cli") -> tuple[bool, str]:
    """Whether a text goes into a file, and why. UsageProblem for a malformed setting."""
    found = cli.settings.get(SETTING)
    way = "auto" if found is None else found.value
    if way not in WAYS:
        raise UsageProblem(f"{SETTING}: {way!r} is not one of {', '.join(WAYS)}")
    if way != "auto":
        return way == "file", f"{SETTING} is {way}"
    reason = no_clipboard(cli.environ)
    return bool(reason), reason


def copy_file(cli: "Cli") -> Path:
    """The file that a text is copied into."""
    from rmqctl.cli.paths import base_folder

    return base_folder(cli.environ, "XDG_STATE_HOME", ".local/state") / "rmqctl" / "copied.txt"


def copy(app: "ConsoleApp", text: str) -> None:
    """Copy a text; the notice says which way it went."""
    try:
        to_file, reason = way_of(app.cli)
    except UsageProblem as error:
        app.notice = str(error)
        return
    if to_file:
        _into_file(app, text, reason)
        return
    if app.terminal is not None:
        app.terminal.copy(text)
    app.notice = f"copied to the terminal (OSC 52): {text}"


def _into_file(app: "ConsoleApp", text: str, reason: str) -> None:
    path = copy_file(app.cli)
    stores = list(app.readers)
    app.notice = "writing ..."

    def show(sentence: str) -> None:
        app.notice = sentence
        app.draw()

    def work() -> None:
        try:
            check_outside(path, stores)
            path.parent.mkdir(parents=True, exist_ok=True)
            check_file(path, stores, None)
            write(path, text + "\n")
            sentence = f"copied to the file {path} ({reason}): {text}"
        except OSError as error:
            sentence = f"{path} cannot be written: {error.strerror} ({reason}): {text}"
        except Exception as error:  # noqa: BLE001 - the screen shows what happened
            sentence = f"{sentence_of(error)} ({reason}): {text}"
        with contextlib.suppress(RuntimeError):  # the app has ended
            app.call_later(show, sentence)

    threading.Thread(target=work, name="console-copy").start()
