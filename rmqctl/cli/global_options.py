"""The options that every command takes, before and after its name.

They are attached to the root, to each noun and to each command; a callback puts what was given into
the :class:`rmqctl.cli.context.Cli` of the call, so that commands do not carry them around. What is
given after the command wins.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from typer.core import TyperOption


class Spec(NamedTuple):
    """One option: its names, its value's name in the help (a flag has none) and its help."""

    names: tuple[str, ...]
    metavar: str
    help: str
    multiple: bool = False


SPECS: Final = (
    Spec(("-S", "--store"), "DIR", "The store's folder (RMQCTL_STORE)", multiple=True),
    Spec(("--context",), "NAME", "A named set of options (RMQCTL_CONTEXT)"),
    Spec(("--config",), "FILE", "The settings file (RMQCTL_CONFIG)"),
    Spec(
        ("-o", "--output"),
        "FMT",
        "table, wide, plain, json, jsonl, yaml, csv, tsv, md; help lists the fields",
    ),
    Spec(("--columns",), "A,B", "Only these fields, in this order"),
    Spec(("--sort",), "A,-B", "Sort by fields; - turns the order round"),
    Spec(("--where",), "EXPR", "Only rows for which this holds, such as 'lag > 1000'"),
    Spec(("--limit",), "N", "At most N rows"),
    Spec(("--no-headers",), "", "Leave out the header line"),
    Spec(("--tz",), "ZONE", "Time zone for reading and printing times (default: local)"),
    Spec(("--raw",), "", "Raw milliseconds, bytes and ids"),
    Spec(("--color",), "WHEN", "auto, always or never"),
    Spec(("--no-color",), "", "The same as --color never"),
    Spec(("-q", "--quiet"), "", "Say less on stderr"),
    Spec(("-v", "--verbose"), "", "Say more on stderr"),
    Spec(("--debug",), "", "Show a traceback when something fails"),
    Spec(("--progress",), "STYLE", "auto, plain or none; on stderr"),
    Spec(("--no-input",), "", "Never ask; what needs an answer is refused"),
    Spec(("-y", "--yes"), "", "Do not ask before a change"),
    Spec(("-n", "--dry-run"), "", "Show what would be done, change nothing"),
    Spec(("--execute",), "", "Do it, where a dry run is the default"),
    Spec(("--reason",), "TEXT", "Written to the journal with the change"),
    Spec(("--timeout",), "DUR", "Give up after this time, such as 30s"),
    Spec(("--version",), "", "Show the version and exit"),
)

NAMES: Final = frozenset(spec.names[-1][2:].replace("-", "_") for spec in SPECS)
"""The options' names as :class:`rmqctl.cli.context.Cli` keeps them."""


def is_everywhere(parameter: Any) -> bool:
    """Whether a parameter is one of these, and not a command's own in the place of one."""
    return parameter.name in NAMES and not parameter.expose_value


def global_options() -> list[TyperOption]:
    """A fresh set of parameters for one command."""
    return options_of(SPECS)


def options_of(specs: Iterable[Spec]) -> list[TyperOption]:
    """Parameters whose values go to the call's context instead of to the command function."""
    return [
        TyperOption(
            param_decls=list(spec.names),
            metavar=spec.metavar or None,
            help=spec.help,
            is_flag=not spec.metavar,
            multiple=spec.multiple,
            type=str if spec.metavar else None,
            default=None,
            expose_value=False,
            is_eager=spec.names[-1] in {"--output", "--version"},
            callback=_remember,
        )
        for spec in specs
    ]


def _remember(ctx: Any, param: Any, value: Any) -> Any:
    """Hand a value that was given to the call's context."""
    if value not in (None, False, ()) and not ctx.resilient_parsing:
        ctx.obj.remember(param.name, value)
    if param.name == "version" and not ctx.resilient_parsing:
        # The last of the eager ones, as it is not given. So `-o help --by queue` has its rows
        # explained, and no argument is missed: nothing is run.
        ctx.obj.explain_fields(ctx.command)
    return value
