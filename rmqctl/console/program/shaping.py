"""``c`` and ``:columns``: the columns of the list with the cursor."""

from typing import TYPE_CHECKING

from rmqctl.console.columns import ColumnList
from rmqctl.console.details import DetailPane
from rmqctl.console.parts import DrawnPane
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from rmqctl.console.panes import Pane
    from rmqctl.console.program.app import ConsoleApp


def no_columns(app: "ConsoleApp") -> str:
    """Why the pane with the cursor has no columns; empty if it has some."""
    if isinstance(app.pane, DrawnPane | DetailPane):
        return "this pane has no columns; tab goes to a list"
    return ""


def do_columns(app: "ConsoleApp") -> None:
    """Choose and order the columns."""

    def tell(sentence: str) -> None:
        app.notice = sentence

    app.notice = no_columns(app)
    if not app.notice:
        app.overlay = ColumnList(app.pane, tell)


def set_columns(app: "ConsoleApp", text: str) -> None:
    """Show the columns of a list as ``--columns`` takes it. UsageProblem for other names."""
    problem = no_columns(app)
    if problem:
        raise UsageProblem(problem)
    names = [name.strip() for name in text.split(",")]
    pane: Pane = app.pane
    pane.set_columns([name for name in names if name])
