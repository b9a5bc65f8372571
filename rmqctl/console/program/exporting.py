"""``e`` and ``:export``: what a pane shows, as a file in any format of ``-o``."""

import contextlib
import shlex
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.console.details import DetailPane
from rmqctl.console.faults import sentence_of
from rmqctl.console.parts import DrawnPane
from rmqctl.console.program.files import check_file
from rmqctl.errors import CliError, UsageProblem
from rmqctl.exit_codes import NOT_WRITABLE
from rmqctl.output.view import Format, View

if TYPE_CHECKING:
    from rmqctl.console.panes import Pane
    from rmqctl.console.program.app import ConsoleApp

_FORMATS: Final = tuple(form for form in Format if form is not Format.HELP)
_ENDINGS: Final = {
    **{f".{form}": form for form in _FORMATS},
    ".txt": Format.TABLE,
    ".yml": Format.YAML,
    ".ndjson": Format.JSONL,
}


class Target(NamedTuple):
    """Where rows go."""

    form: Format
    path: Path
    replaces: bool
    """Whether a file that is there is replaced."""


class Export(NamedTuple):
    """Rows that are to be written."""

    row_type: type
    rows: Sequence[Any]
    view: View
    one: bool
    """Whether the command prints an object, not a list."""
    count_text: str
    """How many there are, and of what they are a part."""


def do_export(app: "ConsoleApp") -> None:
    """Ask for the file."""

    def answer(text: str) -> None:
        try:
            if text.strip():
                export(app, shlex.split(text), replaces=False)
        except (ValueError, CliError) as error:
            app.notice = str(error)
        except OSError as error:
            app.notice = sentence_of(error)

    try:
        rows_of(app.pane, Format.JSON)
    except CliError as error:
        app.notice = str(error)
        return
    app.ask("export to [FORMAT] FILE: ", answer)


def export(app: "ConsoleApp", words: Sequence[str], *, replaces: bool) -> None:
    """Write what the pane with the cursor shows; the notice says what was written.

    It is done in a thread of its own, so that no key waits; the end of the process waits for it.
    UsageProblem says what is missing.
    """
    target = target_of(words, replaces=replaces)
    wanted = rows_of(app.pane, target.form)
    stores = list(app.readers)
    app.notice = "writing ..."

    def show(sentence: str) -> None:
        app.notice = sentence
        app.draw()

    def work() -> None:
        try:
            write(wanted, target, stores)
            sentence = f"{wanted.count_text} as {target.form} to {target.path}"
        except Exception as error:  # noqa: BLE001 - the screen shows what happened
            sentence = sentence_of(error)
        with contextlib.suppress(RuntimeError):  # the app has ended
            app.call_later(show, sentence)

    threading.Thread(target=work, name="console-export").start()


def target_of(words: Sequence[str], *, replaces: bool) -> Target:
    """The format and the file of ``[FORMAT] FILE``. UsageProblem for other words."""
    from rmqctl.cli.paths import expanded

    names = ", ".join(_FORMATS)
    if len(words) not in (1, 2):
        raise UsageProblem(f"':export [FORMAT] FILE'; the format is one of {names}")
    path = expanded(words[-1]).absolute()
    if len(words) == 1:
        form = _ENDINGS.get(path.suffix.lower())
        if form is None:
            raise UsageProblem(
                f"{words[0]!r} does not end in a format, as .json; or name one before"
            )
        return Target(form, path, replaces)
    if words[0] not in _FORMATS:
        raise UsageProblem(f"{words[0]!r} is not a format: {names}")
    return Target(Format(words[0]), path, replaces)


def rows_of(pane: "Pane", form: Format) -> Export:
    """What a pane shows: all of it, or the rows that are marked. UsageProblem if it has no rows."""
    from rmqctl.console.plans.offered import marked

    if isinstance(pane, DrawnPane) or pane.empty:
        raise UsageProblem("this pane has no rows; tab goes to one that has some")
    if pane.as_of is None:
        raise UsageProblem(pane.error or "no row has been read yet")
    table = pane.table
    if isinstance(pane, DetailPane):
        rows: Sequence[Any] = [] if pane.row() is None else [pane.row()]
        if not rows:
            raise UsageProblem("this pane shows no row")
    elif table.marked:
        try:
            rows = marked(pane)
        except ValueError as error:
            raise UsageProblem(str(error)) from None
    else:
        rows = list(table.shown)
    text = f"{len(rows):,} {'marked ' if table.marked else ''}row{'' if len(rows) == 1 else 's'}"
    if parts := list(_parts(pane)):
        text += f" ({'; '.join(parts)})"
    one = isinstance(pane, DetailPane)
    return Export(pane.look.row_type, rows, pane.export_view(form), one, text)


def _parts(pane: "Pane") -> "Iterable[str]":
    """Of what the rows are a part."""
    if text := pane.part_text():
        yield text
    if len(pane.table.shown) < pane.table.total:
        yield f"of {pane.table.total:,}, by the filter"
    if pane.hidden:
        yield f"{pane.hidden:,} of the system left out"
    if pane.notices:
        yield "see the notes above the rows"


def write(wanted: Export, target: Target, stores: Iterable[Path]) -> None:
    """Write a file, whole or not at all. CliError says why not."""
    from rmqctl.output.render import render_one, render_rows
    from rmqctl.output.saved_file import FileOut, saved_file

    path = target.path
    _check(target, stores)
    try:
        with saved_file(path) as file:
            out = FileOut(file)
            if wanted.one:
                render_one(wanted.row_type, wanted.rows[0], wanted.view, out)
            else:
                render_rows(wanted.row_type, wanted.rows, wanted.view, out)
            _check(target, stores)  # it may have come meanwhile
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", NOT_WRITABLE) from error


def _check(target: Target, stores: Iterable[Path]) -> None:
    """Raise for a file that must not be written."""
    replaced_by = None if target.replaces else f"':export! {target.form} FILE'"
    check_file(target.path, stores, replaced_by)
