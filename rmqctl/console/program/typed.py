"""What is typed after ``:``: a screen, or a word that sets or begins something."""

import shlex
from typing import TYPE_CHECKING

from rmqctl.console.faults import sentence_of
from rmqctl.console.plans.desk import CHANGING
from rmqctl.console.screens.table import place_named
from rmqctl.errors import CliError

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp


def carry_out(app: "ConsoleApp", text: str) -> None:
    """Do what was typed; the last line says what is wrong with it."""
    word, _, rest = text.partition(" ")
    rest = rest.strip()
    try:
        if word in ("q", "quit"):
            app.quit()
        elif word in ("write", "readonly"):
            app.notice = app.desk.turn_on(rest) if word == "write" else app.desk.turn_off()
        elif word in CHANGING and not rest:
            app.notice = app.desk.begin(word, app.place, app.pane, app.panes)
        elif word == "ctx" and rest:
            from rmqctl.console.switching import switch

            switch(app, rest.strip())
        elif word == "where":
            app.pane.set_where(rest or None)
            if app.pane.look.endless:  # the condition is a part of the place
                app.places[app.at] = app.pane.place
            app.look()  # it may be about rows that are left out else
        elif word == "all":
            app.everything = not app.everything
            app.look()
        elif word == "sort":
            app.pane.sort_by(rest.lstrip("+-"), descending=rest[:1] == "-")
        elif word == "columns":
            from rmqctl.console.program import shaping

            shaping.set_columns(app, rest)
        elif word == "every":
            app.look_every(_seconds(rest))
        elif word in ("picture", "picture!"):
            from rmqctl.console.program import pictures

            pictures.picture(app, shlex.split(rest), replaces=word == "picture!")
        elif word in ("export", "export!"):
            from rmqctl.console.program import exporting

            exporting.export(app, shlex.split(rest), replaces=word == "export!")
        elif word == "explain" and rest:
            from rmqctl.console.program import explaining

            explaining.explain(app, [rest])
        elif word in ("from", "search", "follow"):
            from rmqctl.console import message_actions

            message_actions.go(app, word, shlex.split(rest))
        else:
            app.go(place_named(shlex.split(text)))
    except (ValueError, CliError) as error:
        app.notice = str(error)
    except OSError as error:
        app.notice = sentence_of(error)


def _seconds(text: str) -> float:
    """The seconds between two looks. ValueError for another text."""
    from storage.parse.durations import parse_duration

    milliseconds = parse_duration(text)
    if not milliseconds:
        raise ValueError("':every DUR' needs a time above 0, such as 5s")
    return milliseconds / 1000
