"""``rmqctl mqadmin``: commands with mqadmin's names and options."""

import shlex
from typing import Annotated

import typer

from rmqctl.cli.context import Cli, context_of, leaves_arguments, prints
from rmqctl.exit_codes import DONE
from rmqctl.help.rows import OldCommandRow


@leaves_arguments
@prints(OldCommandRow)
def mqadmin(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="An mqadmin command (default: list all)")
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTION...]", help="mqadmin's options, and long options of rmqctl"),
    ] = None,
) -> int:
    """Run an mqadmin 4.9 command as rmqctl commands, which are printed on stderr.

    Options for name servers, brokers and clusters are ignored: the store is the broker. Changes
    that mqadmin makes at once need a confirmation here; --yes confirms them.

    Lag of a group:    rmqctl mqadmin consumerProgress -g billing
    List all commands: rmqctl mqadmin
    Show the new form: rmqctl mqadmin help updateTopic
    """
    cli = context_of(ctx)
    if name is None:
        cli.rows(OldCommandRow, map(_row, _commands()))
        return DONE
    from rmqctl.cli.lazy import take_options

    from .translate import known_name, own_words, translate

    given = list(words or ())
    if name == "help" and given:
        cli.one(_row(known_name(given[0])))
        return DONE
    known = known_name(name)
    if {"-h", "--help"} & set(given):
        cli.one(_row(known))
        return DONE
    own = own_words(known, given)
    given = [*_typed_before(cli), *given]
    take_options(cli, own)
    translation = translate(known, given, cli.store.path)
    if translation.ignored:
        cli.say(f"rmqctl: ignored: {', '.join(translation.ignored)}")
    return max(_run(cli, line) for line in translation.lines)


def _typed_before(cli: Cli) -> list[str]:
    """The target options before the old name, which the printed command repeats."""
    words = [f"--store={folder}" for folder in cli.given.get("store", ())]
    named = [f"--{name}={cli.given[name]}" for name in ("context", "config") if name in cli.given]
    return words + named


def _commands() -> list[str]:
    from .translate import COMMANDS

    return list(COMMANDS)


def _row(name: str) -> OldCommandRow:
    from .translate import COMMANDS, sample

    old = COMMANDS[name]
    options = [
        f"-{letter}, --{long}{' (required)' if required else ''}"
        for letter, (long, _, required) in old.specs.items()
        if letter != "n"
    ]
    if isinstance(old.new, str):
        return OldCommandRow(name, None, old.new, options)
    return OldCommandRow(name, f"rmqctl {sample(name)}", None, options)


def _run(cli: Cli, line: list[str]) -> int:
    from rmqctl.cli import lazy

    cli.say(f"rmqctl {shlex.join(line)}")
    cli.out.flush()
    root = lazy.root()
    with root.make_context("rmqctl", line, obj=cli) as ctx:
        result: object = root.invoke(ctx)
    return result if isinstance(result, int) else DONE
