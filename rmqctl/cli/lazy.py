"""Typer commands that are built when they run, and the layout of their help.

Importing all commands would slow down every call, and a call needs one of them. So a group lists
its commands from the table in :mod:`rmqctl.cli.tree` and builds the one that was named.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command as build_command

from .context import printed_by
from .exclusions import check_exclusions
from .global_options import ROW_OPTIONS, global_options, is_everywhere, options_of
from .marks import Changes
from .names_both_ways import accept_both, name_options
from .tree import ABOUT, MOST_COLUMNS, TREE, CommandGroup, CommandRef

_CONTEXT: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": MOST_COLUMNS,
}
_NAMED = ("topic", "topics", "group", "groups")
"""Arguments and options whose values are in messages that are JSON."""
# Typer may carry its own copy of click or use the installed one.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
_RAW: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": False}


class Command(TyperCommand):
    """A command with the options of :mod:`rmqctl.cli.global_options` added to its own."""

    row_types: tuple[type, ...] = ()
    """What the command prints; ``-o help`` lists the fields of the first."""
    failure_code: int | None = None
    """See Cli.failure_code."""
    changes: Changes | None = None
    """How the command changes something; None if it only reads."""
    most_used: tuple[str, ...] | None = None
    """Long names of the options that its help shows without ``--all``; None: all own ones."""
    refused: Mapping[str, str] = {}
    """Names of global options that the command cannot take, and why."""
    uses_store: bool = True
    """Whether ``--store`` has an effect."""
    many_stores: bool = False
    """Whether ``--store`` may be given several times; all of the stores are read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add(global_options())

    def add(self, options: list[TyperOption]) -> None:
        """Add further options, except those whose name the command uses itself."""
        own = {name for parameter in self.params for name in parameter.opts}
        self.params += [option for option in options if not own & set(option.opts)]

    def name_both_ways(self) -> None:
        """Add an option for each argument that names a topic or a group."""
        place = next(n for n, p in enumerate(self.params) if isinstance(p, TyperOption))
        self.params[place:place] = name_options(self.params)

    def make_parser(self, ctx: Any) -> Any:
        """The parser; topics and groups may be words or options."""
        return accept_both(super().make_parser(ctx), ctx, self.get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; a failure from here on belongs to this command."""
        if not ctx.resilient_parsing:
            ctx.obj.failure_code = self.failure_code
        words = list(args)
        if not ctx.resilient_parsing:
            ctx.obj.words = words
        with _whole_help(ctx, words):
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
        ctx.obj.changes = self.changes
        ctx.obj.uses_store = self.uses_store
        ctx.obj.named = {name: value for name in _NAMED if (value := ctx.params.get(name))}
        ctx.obj.begin(ctx.command_path, many_stores=self.many_stores)
        for name, why in self.refused.items():
            ctx.obj.check_not_given((name,), why)
        row_types = printed_by(ctx)
        if row_types and not self._sees_to_its_view(ctx):
            ctx.obj.check_view(*row_types)
        return super().invoke(ctx)

    def _sees_to_its_view(self, ctx: Any) -> bool:
        """Whether it has formats of its own, or takes the options of another command."""
        own_formats = any(p.name == "output" and not is_everywhere(p) for p in self.params)
        return own_formats or bool(ctx.ignore_unknown_options)

    @property
    def passes_options(self) -> bool:
        """Whether its words are the command line of another command."""
        return bool(self.context_settings.get("ignore_unknown_options"))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """What fits a screen; all of it with ``--all``."""
        from . import help_text

        self.format_usage(ctx, formatter)
        lines = help_text.whole if ctx.meta.get(_WHOLE) else help_text.screen
        formatter.write("".join(f"{line}\n" for line in lines(ctx, self, formatter.width)))


_WHOLE = "rmqctl.whole_help"
"""Whether ``--help`` comes with ``--all``; kept beside the context of the call."""


@contextmanager
def _whole_help(ctx: Any, words: Sequence[str]) -> Iterator[None]:
    """``--help --all`` prints the whole help, also of commands without an option ``--all``."""
    asked = "--all" in words and not {"-h", "--help"}.isdisjoint(words)
    ctx.meta[_WHOLE] = asked
    try:
        yield
    except _USAGE_ERROR as error:
        if not asked or getattr(error, "option_name", None) != "--all":
            raise
        typer.echo(ctx.get_help())
        ctx.exit(0)


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
        self.unknown: str | None = None
        """The command that was asked for and does not exist."""
        self.after_unknown: list[str] = []

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
            if args[1:] in ([], ["--all"]):
                ctx.meta[_WHOLE] = len(args) > 1
                typer.echo(ctx.get_help())
                ctx.exit(0)
            args = [*args[1:], "--help"]
        name = args[0]
        if name not in self.table and not ctx.resilient_parsing:
            if name.startswith("-"):
                ctx.fail(f"no such option {name!r}")
            self.unknown, self.after_unknown = name, args[1:]
            ctx.fail(f"no such command {name!r}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command; without arguments, print the help."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit(0)
        with _whole_help(ctx, args):
            return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The commands of the table; on the root also examples, and with ``--all`` the options."""
        from .root_help import definitions, first_lines, more_line

        self.format_usage(ctx, formatter)
        width, is_root, whole = formatter.width, self.table is TREE, bool(ctx.meta.get(_WHOLE))
        lines = first_lines(self.help or "", self.table, width, whole=whole)
        if is_root and whole:
            records = [option.get_help_record(ctx) for option in self.params]
            lines += ["", "Global options, before or after the command's name:"]
            lines += definitions([record for record in records if record], width)
        else:
            lines += ["", more_line(ctx.command_path, is_root=is_root)]
        formatter.write("".join(f"{line}\n" for line in lines))


def build(name: str, entry: CommandRef | CommandGroup) -> TyperGroup | Command:
    """The Typer command of a table entry, built once; imports its module."""
    if isinstance(entry, CommandGroup):
        return LazyGroup(name, entry.help, entry.verbs)
    return _built(name, getattr(import_module(f"rmqctl.{entry.module}"), entry.function))


@cache
def _built(name: str, function: Callable[..., Any]) -> Command:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    raw = _RAW if getattr(function, "leaves_arguments", False) else {}
    app.command(name, cls=Command, context_settings={**_CONTEXT, **raw})(function)
    command = build_command(app)
    assert isinstance(command, Command)
    command.name_both_ways()
    command.row_types = getattr(function, "row_types", ())
    command.failure_code = getattr(function, "failure_code", None)
    command.changes = getattr(function, "changes", None)
    command.most_used = getattr(function, "most_used", None)
    command.refused = getattr(function, "refused", _refused_without_rows(command))
    command.uses_store = getattr(function, "uses_store", True)
    command.many_stores = getattr(function, "many_stores", False)
    command.add(options_of(getattr(function, "more_options", ())))
    return command


def _refused_without_rows(command: Command) -> Mapping[str, str]:
    if command.row_types or command.passes_options:
        return {}
    return dict.fromkeys(ROW_OPTIONS, "is for rows, and this command prints none")


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
