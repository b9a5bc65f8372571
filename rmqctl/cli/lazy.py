"""Typer commands that are built when they run, and the layout of their help.

Importing all commands would slow down every call, and a call needs one of them. So a group lists
its commands from the table in :mod:`rmqctl.cli.tree` and builds the one that was named.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command as build_command

from .exclusions import check_exclusions
from .global_options import SPECS, global_options, is_everywhere, options_of
from .tree import SECTIONS, TREE, CommandGroup, CommandRef

_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_RAW: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": False}
ABOUT = """\
rmqctl produces to, consumes from and manages an Apache RocketMQ 4.9 store: a folder on disk that
is used without a broker process. Not affiliated with the Apache Software Foundation."""
EXAMPLES = """\
  Send a message:                     echo hello | rmqctl produce greetings
  Read all messages, then stop:       rmqctl consume greetings -e
  Consume as a member of a group:     rmqctl consume greetings -g readers -e
  List the queues of the store:       rmqctl topic queues"""

_MORE = """\
rmqctl --help: options of every command. rmqctl COMMAND --help: its own, with examples.
rmqctl cheat: example commands. rmqctl explain TERM: what a term or a code means."""


class Command(TyperCommand):
    """A command with the options of :mod:`rmqctl.cli.global_options` added to its own."""

    row_types: tuple[type, ...] = ()
    """What the command prints; ``-o help`` lists the fields of the first."""
    failure_code: int | None = None
    """See Cli.failure_code."""
    many_stores: bool = False
    """Whether ``--store`` may be given several times; all of the stores are read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add(global_options())

    def add(self, options: list[TyperOption]) -> None:
        """Add further options, except those whose name the command uses itself."""
        own = {name for parameter in self.params for name in parameter.opts}
        self.params += [option for option in options if not own & set(option.opts)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; a failure from here on belongs to this command."""
        if not ctx.resilient_parsing:
            ctx.obj.failure_code = self.failure_code
        words = list(args)
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing and not ctx.ignore_unknown_options:
            own = {p.opts[-1] for p in self.params if p.name in ctx.params and _is_typed(ctx, p)}
            everywhere = {f"--{name.replace('_', '-')}" for name in ctx.obj.given}
            ctx.obj.command_path = ctx.command_path  # an error points to the help of this command
            name = ctx.command_path.removeprefix("rmqctl ")
            check_exclusions(name, self.params, {*_longs(self, own), *everywhere}, words)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an integer that it returns is the exit code."""
        ctx.obj.begin(ctx.command_path, many_stores=self.many_stores)
        if self.row_types and not self._sees_to_its_view(ctx):
            ctx.obj.check_view(*self.row_types)
        return super().invoke(ctx)

    def _sees_to_its_view(self, ctx: Any) -> bool:
        """Whether it has formats of its own, or takes the options of another command."""
        own_formats = any(p.name == "output" and not is_everywhere(p) for p in self.params)
        return own_formats or bool(ctx.ignore_unknown_options)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """The docstring as written: its lines are already short."""
        _write_text(formatter, self.help or "")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and the command's own options in full, the global options in short."""
        arguments: list[tuple[str, str]] = []
        options: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or is_everywhere(parameter) or parameter.name == "help":
                continue
            (options if isinstance(parameter, TyperOption) else arguments).append(record)
        for title, records in (("Arguments", arguments), ("Options", options)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        with formatter.section("Global options (see rmqctl --help)"):
            formatter.write_text(" ".join("/".join(spec.names) for spec in SPECS) + " -h/--help")


def _is_typed(ctx: Any, parameter: Any) -> bool:
    source = ctx.get_parameter_source(parameter.name)
    return source is not None and source.name == "COMMANDLINE"


def _longs(command: Command, own: set[str]) -> set[str]:
    """All long names of the options that have one of these names."""
    return {
        name
        for parameter in command.params
        if own.intersection(parameter.opts)
        for name in parameter.opts
        if name.startswith("--")
    }


class LazyGroup(TyperGroup):
    """A group whose commands are listed in a table and imported when one is named."""

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002
        table: Mapping[str, CommandRef | CommandGroup],
    ) -> None:
        super().__init__(
            name=name,
            help=help,
            params=global_options(),
            context_settings=_CONTEXT,
            rich_markup_mode=None,
            subcommand_metavar="COMMAND ...",
        )
        self.table = table
        self.short = False
        self.unknown: str | None = None
        """The command that was asked for and does not exist."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names of the table, in order."""
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command with this name, built now; None if there is none."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        return build(cmd_name, entry)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the named command.

        ``help NAME`` is the same as ``NAME --help``.
        """
        if args[0] == "help":
            if len(args) == 1:
                typer.echo(ctx.get_help())
                ctx.exit(0)
            args = [*args[1:], "--help"]
        name = args[0]
        if name not in self.table and not ctx.resilient_parsing:
            if name.startswith("-"):
                ctx.fail(f"no such option {name!r}")
            self.unknown = name
            ctx.fail(f"no such command {name!r}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command; without arguments, print the help.

        The root then prints its short help, without options.
        """
        if not args and not ctx.resilient_parsing:
            self.short = True
            typer.echo(ctx.get_help())
            ctx.exit(0)
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """The summary of the group; on the root also the examples."""
        _write_text(formatter, self.help or "")
        if self.table is TREE:
            with formatter.section("Examples"):
                formatter.write(EXAMPLES + "\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The commands of the table; on the root also the options."""
        for title, names in self._sections():
            rows = [(name, self.table[name].help) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)
        if self.table is not TREE:
            return
        if self.short:
            _write_text(formatter, _MORE)
            return
        with formatter.section("Global options, before or after the command's name"):
            records = [option.get_help_record(ctx) for option in self.params]
            formatter.write_dl([record for record in records if record])

    def _sections(self) -> Sequence[tuple[str, Sequence[str]]]:
        if self.table is not TREE:
            return [("Commands", list(self.table))]
        return [
            (title, present)
            for title, names in SECTIONS.items()
            if (present := [name for name in names if name in self.table])
        ]


def _write_text(formatter: Any, text: str) -> None:
    if text:
        formatter.write_paragraph()
        formatter.write("".join(f"  {line}".rstrip() + "\n" for line in text.splitlines()))


def build(name: str, entry: CommandRef | CommandGroup) -> TyperGroup | Command:
    """Build the Typer command of a table entry; imports its module."""
    if isinstance(entry, CommandGroup):
        return LazyGroup(name, entry.help, entry.verbs)
    function = getattr(import_module(f"rmqctl.{entry.module}"), entry.function)
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    raw = _RAW if getattr(function, "leaves_arguments", False) else {}
    app.command(name, cls=Command, context_settings={**_CONTEXT, **raw})(function)
    command = build_command(app)
    assert isinstance(command, Command)
    command.row_types = getattr(function, "row_types", ())
    command.failure_code = getattr(function, "failure_code", None)
    command.many_stores = getattr(function, "many_stores", False)
    command.add(options_of(getattr(function, "more_options", ())))
    return command


def take_options(cli: Any, words: Sequence[str]) -> None:
    """Set the global options among some words in the call's context.

    For a command that translates its words to another command line: the target store is known
    before the translation. The new line is parsed once more as a whole.
    """
    settings = {**_CONTEXT, "ignore_unknown_options": True, "allow_extra_args": True}
    settings["help_option_names"] = []
    own = TyperCommand("mqadmin", params=[*global_options()], context_settings=settings)
    own.make_context("mqadmin", list(words), obj=cli)
    cli.check_one_store()


def root() -> LazyGroup:
    """The whole program."""
    return LazyGroup("rmqctl", ABOUT, TREE)
