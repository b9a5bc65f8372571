"""Going to another store: that of a context, or another one that was given with ``--store``."""

from typing import TYPE_CHECKING

from rmqctl.cli.context import Cli
from rmqctl.cli.paths import expanded
from rmqctl.config.contexts import context_rows
from rmqctl.errors import NotFound, Refused

from .looks.look import Place
from .reading import Reader

if TYPE_CHECKING:
    from rmqctl.console.program.app import ConsoleApp


def cli_of(cli: Cli, name: str) -> Cli:
    """The call with the store of a context, with one of the folders that it names, or as it is.

    ``cli`` is the call that began the console: its folders stay in reach. NotFound for a name that
    is none of these.
    """
    found = Cli(cli.environ)
    given = {key: value for key, value in cli.given.items() if key not in ("store", "context")}
    folders = cli.given.get("store", [])
    for folder in folders:
        if name in (folder, expanded(folder).name):
            found.given = {**given, "store": [*(f for f in folders if f != folder), folder]}
            return found
    names = [row.context for row in context_rows(cli.settings, None)]
    first = cli.store.path
    if name not in names:
        if not folders and name in (str(first), first.name):
            found.given = dict(cli.given)
            return found
        known = ", ".join([*names, *(folders or [str(first)])])
        raise NotFound(f"there is no context and no --store {name!r}; known: {known}")
    found.given = {**given, "context": name}
    return found


def switch(app: "ConsoleApp", name: str) -> None:
    """Show another store, read only. Refused while a change is shown."""
    if app.desk.sheet is not None:
        raise Refused("a change is shown; leave it first")
    cli = cli_of(app.first_cli, name)
    path = cli.store.path
    app.reader.forget()
    reader = app.readers.get(path)
    if reader is None:
        reader = app.readers[path] = Reader(path, app.from_reader, cli.zone, cli.settings)
        reader.start()
    app.show_store(cli, reader)
    app.go(Place("overview"))
    app.notice = f"store {path}, read only"
