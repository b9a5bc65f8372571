"""What keys do: a function for each action of the table of keys that has no module of its own."""

from typing import TYPE_CHECKING

from rmqctl.console.helping import next_page
from rmqctl.console.looks.look import Place
from rmqctl.console.program import typed
from rmqctl.console.prompt import Asks
from rmqctl.console.screens.table import TABLE
from rmqctl.console.tables import Filter
from rmqctl.console.target import with_target

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp


def do_down(app: "ConsoleApp") -> None:
    """Move the cursor."""
    app.pane.move(1)


def do_up(app: "ConsoleApp") -> None:
    """Move the cursor."""
    app.pane.move(-1)


def do_first(app: "ConsoleApp") -> None:
    """Move the cursor."""
    app.pane.move_to_end(last=False)


def do_last(app: "ConsoleApp") -> None:
    """Move the cursor."""
    app.pane.move_to_end(last=True)


def do_page_down(app: "ConsoleApp") -> None:
    """Move the cursor."""
    app.pane.move(max(1, app.pane.height // 2))


def do_page_up(app: "ConsoleApp") -> None:
    """Move the cursor."""
    app.pane.move(-max(1, app.pane.height // 2))


def do_open(app: "ConsoleApp") -> None:
    """Go where the row leads."""
    row = app.pane.row()
    look = app.pane.look
    place = None
    if row is not None and app.place.screen == "contexts":
        typed.carry_out(app, f"ctx {row.context}")
    if row is not None and look.opens_at is not None:
        place = look.opens_at(row, app.pane.place)
    elif row is not None and look.opens is not None:
        place = look.opens(row)
    if place is not None:
        app.go(place)


def do_back(app: "ConsoleApp") -> None:
    """Close the help, drop the filter, or go back one screen: the one before, else the parent."""
    if app.helping:
        app.helping = 0
    elif app.pane.table.filter:
        app.pane.set_filter(Filter())
    elif app.at > 0:
        do_history_back(app)
    elif (parent := TABLE[app.place.screen].parent) is not None:
        app.go_above(Place(parent, app.place.names[: len(TABLE[parent].names)]))


def do_last_place(app: "ConsoleApp") -> None:
    """Go to the place before."""
    if app.at > 0:
        app.go(app.places[app.at - 1], kept=True)


def do_history_back(app: "ConsoleApp") -> None:
    """Go back."""
    if app.at > 0:
        app.back_to(app.at - 1)


def do_history_forward(app: "ConsoleApp") -> None:
    """Go forward."""
    if app.at + 1 < len(app.places):
        app.back_to(app.at + 1)


def do_next_pane(app: "ConsoleApp") -> None:
    """Move the cursor to the next pane."""
    seen = sorted(n for n in app.seen() if not app.panes[n].spec.still) or [app.active]
    app.active = next((n for n in seen if n > app.active), seen[0])


def do_queue_before(app: "ConsoleApp") -> None:
    """Move to the queue before in the heat map."""
    app.panes[app.spec.start].step(-1)


def do_queue_after(app: "ConsoleApp") -> None:
    """Move to the next queue of the heat map."""
    app.panes[app.spec.start].step(1)


def do_history(app: "ConsoleApp") -> None:
    """Show the changes of a group."""
    app.go(Place("history", app.place.names))


def do_agenda_by(app: "ConsoleApp") -> None:
    """Order the agenda by the next of level, topic and group."""
    app.panes[app.spec.start].next_order()


def do_stop(app: "ConsoleApp") -> None:
    """Stop what is read of the screen: its walks, and looks that are not complete. A look that
    reads rows anew leaves those of the look before."""
    for pane in app.panes:
        reader = app.walker if pane.look.walk else app.reader
        if pane.can_be_stopped and reader is not None:
            for number in pane.numbers.values():
                reader.stop_look(number)


def do_check(app: "ConsoleApp") -> None:
    """Check the store."""
    app.go(Place("check"))


def do_go_to(app: "ConsoleApp") -> None:
    """Ask where to go."""
    app.ask_for(Asks.WHERE_TO, ":")


def do_find(app: "ConsoleApp") -> None:
    """Ask for a text."""
    app.ask_for(Asks.TEXT, "/", app.pane.table.filter.typed(fuzzy=False))


def do_find_fuzzy(app: "ConsoleApp") -> None:
    """Ask for letters."""
    app.ask_for(Asks.LETTERS, "~", app.pane.table.filter.typed(fuzzy=True))


def do_sort(app: "ConsoleApp") -> None:
    """Sort by the next column, or the other way."""
    app.pane.next_sort()


def do_reverse(app: "ConsoleApp") -> None:
    """Sort the other way."""
    app.pane.reverse()


def do_wide(app: "ConsoleApp") -> None:
    """Show all columns, or the usual ones."""
    app.pane.set_wide(not app.pane.wide)


def no_marks(app: "ConsoleApp") -> str:
    """Why no row of the pane with the cursor can be marked; empty if one can."""
    return "" if app.pane.shows_marks else "this pane is no list: no row of it can be marked"


def do_mark(app: "ConsoleApp") -> None:
    """Mark the row."""
    app.notice = no_marks(app)
    if not app.notice:
        app.pane.mark()
        app.pane.move(1)


def do_mark_all(app: "ConsoleApp") -> None:
    """Mark all rows."""
    app.notice = no_marks(app)
    if not app.notice:
        app.pane.mark_all()


def do_pause(app: "ConsoleApp") -> None:
    """Pause, or go on."""
    app.paused = not app.paused
    if app.walker is not None:
        app.walker.hold(held=app.paused)


def do_look_now(app: "ConsoleApp") -> None:
    """Look now."""
    if app.terminal is not None:
        app.terminal.redraw()
    for reader in filter(None, (app.reader, app.walker)):
        reader.warn_anew()
    paused, app.paused = app.paused, False
    begun = set()
    for n, pane in enumerate(app.panes):
        is_unread = pane.stopped and pane.as_of is None
        if app.ends(pane) or is_unread or (pane.look.walk and not pane.walks):
            pane.begin_again()
            begun.add(n)
        pane.stopped = False
    if not app.look():  # what waits is read first
        for n in sorted(begun & app.seen()):
            app.read(app.panes[n])
    app.paused = paused


def do_copy_cell(app: "ConsoleApp") -> None:
    """Copy the cell under the cursor, or the row's name."""
    text = app.pane.cell_text()
    if text is None:
        app.notice = "there is no row under the cursor"
    else:
        app.copy(text)


def do_copy_command(app: "ConsoleApp") -> None:
    """Copy the command."""
    app.copy(with_target(app.desk.command or app.pane.command(), app.cli))


def do_help(app: "ConsoleApp") -> None:
    """Show the keys, or hide them."""
    app.helping = next_page(app)


def do_suspend(app: "ConsoleApp") -> None:
    """Suspend the process, as a shell does."""
    if app.terminal is not None:
        app.terminal.suspend()


def do_quit(app: "ConsoleApp") -> None:
    """End."""
    app.quit()
