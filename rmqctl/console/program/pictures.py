"""``^s`` and ``:picture``: what the screen shows, as an SVG file."""

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rmqctl.console.faults import sentence_of
from rmqctl.console.painting import Painter
from rmqctl.console.picture import svg
from rmqctl.console.program.files import check_file
from rmqctl.errors import CliError, UsageProblem
from rmqctl.exit_codes import NOT_WRITABLE

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp


def do_picture(app: "ConsoleApp") -> None:
    """Write a picture into the folder in which the console was started."""
    try:
        _begin(app, None, replaces=False)
    except CliError as error:
        app.notice = f"{error} (:picture FILE)"


def picture(app: "ConsoleApp", words: Sequence[str], *, replaces: bool) -> None:
    """Write a picture into a file that is named, else into the folder of the console.

    CliError says why not.
    """
    from rmqctl.cli.paths import expanded

    if len(words) > 1:
        raise UsageProblem("':picture [FILE]'; quote a name with blanks")
    path = expanded(words[0]).absolute() if words else None
    _begin(app, path, replaces=replaces)


def text_of(app: "ConsoleApp") -> str:
    """The SVG of what is shown now."""
    theme, size = app.theme_of_lines, app.size
    painter = Painter(theme, ascii_only=app.in_ascii)
    title = f"rmqctl console: {app.spec.title(app.place)}"
    return svg(app.frame_lines(), size.width, theme, painter, painter.shown(title))


def _begin(app: "ConsoleApp", path: Path | None, *, replaces: bool) -> None:
    """Write it in a thread of its own, so that no key waits; the process's end waits for it."""
    stores = list(app.readers)
    path = path or _free(Path(f"rmqctl-{app.place.screen}-{time.strftime('%Y%m%d-%H%M%S')}.svg"))
    replaced_by = None if replaces else "':picture! FILE'"
    check_file(path, stores, replaced_by)
    text = text_of(app)
    app.notice = "writing ..."

    def show(sentence: str) -> None:
        app.notice = sentence
        app.draw()

    def work() -> None:
        try:
            write(path, text)
            sentence = f"a picture of the screen is in {path}"
        except Exception as error:  # noqa: BLE001 - the screen shows what happened
            sentence = sentence_of(error)
        with contextlib.suppress(RuntimeError):  # the app has ended
            app.call_later(show, sentence)

    threading.Thread(target=work, name="console-picture").start()


def _free(path: Path) -> Path:
    """The path in the current folder, with a number if there is such a file."""
    path = path.absolute()
    number = 1
    found = path
    while os.path.lexists(found):
        number += 1
        found = path.with_stem(f"{path.stem}-{number}")
    return found


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all. CliError says why not."""
    from rmqctl.output.saved_file import saved_file

    try:
        with saved_file(path) as file:
            file.write(text.encode("utf-8", "replace"))
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", NOT_WRITABLE) from error
