"""The options of every command, before or after its name.

They are attached to the root, to each noun and to each command. A callback stores the given values
in the :class:`rmqctl.cli.context.Cli` of the call, so no command passes them on. A value after the
command's name wins.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, NamedTuple

from typer.core import TyperOption


class Scope(IntEnum):
    """Which commands a global option has an effect on. All commands accept it."""

    ALL = 0
    STORE = 1
    """Commands that read or write a store."""
    ROWS = 2
    """Commands that print rows."""
    PLAN = 3
    """Commands with a dry run."""
    CONSENT = 4
    """Commands that ask before they change something."""


class Spec(NamedTuple):
    """One option: its names, the name of its value in the help (empty for a flag), its help."""

    names: tuple[str, ...]
    metavar: str
    help: str
    multiple: bool = False
    scope: Scope = Scope.ALL


SPECS: Final = (
    Spec(
        ("-S", "--store"),
        "DIR",
        "Folder of the store (RMQCTL_STORE)",
        multiple=True,
        scope=Scope.STORE,
    ),
    Spec(("--context",), "NAME", "Named set of settings to use (RMQCTL_CONTEXT)"),
    Spec(("--config",), "FILE", "Settings file (RMQCTL_CONFIG)"),
    Spec(
        ("-o", "--output"),
        "FMT",
        "Format: table, wide, plain, json, jsonl, yaml, csv, tsv or md; help lists the fields",
        scope=Scope.ROWS,
    ),
    Spec(("--columns",), "A,B", "Print only these fields, in this order", scope=Scope.ROWS),
    Spec(("--sort",), "A,-B", "Sort by these fields; - sorts descending", scope=Scope.ROWS),
    Spec(("--where",), "EXPR", "Print only matching rows, such as 'lag > 1000'", scope=Scope.ROWS),
    Spec(("--limit",), "N", "At most N rows", scope=Scope.ROWS),
    Spec(("--no-headers",), "", "Print no header line", scope=Scope.ROWS),
    Spec(
        ("--tz",),
        "ZONE",
        "Time zone for reading and printing times (default: local)",
        scope=Scope.STORE,
    ),
    Spec(("--raw",), "", "Print raw milliseconds, bytes and ids", scope=Scope.ROWS),
    Spec(("--color",), "WHEN", "Use color: auto, always or never", scope=Scope.ROWS),
    Spec(("--no-color",), "", "The same as --color never", scope=Scope.ROWS),
    Spec(("-q", "--quiet"), "", "Print less on stderr"),
    Spec(("-v", "--verbose"), "", "Print more on stderr"),
    Spec(("--debug",), "", "Show a traceback on errors"),
    Spec(("--log-format",), "FORM", "Messages on stderr as text or json, an object a line"),
    Spec(("--progress",), "STYLE", "Progress on stderr: auto, plain or none", scope=Scope.STORE),
    Spec(
        ("--no-input",), "", "Never prompt; fail where confirmation is needed", scope=Scope.CONSENT
    ),
    Spec(("-y", "--yes"), "", "Make changes without a question", scope=Scope.CONSENT),
    Spec(("-n", "--dry-run"), "", "Show what would be done; change nothing", scope=Scope.PLAN),
    Spec(("--execute",), "", "Has no effect; older scripts give it", scope=Scope.CONSENT),
    Spec(
        ("--reason",),
        "TEXT",
        "Reason to record in the journal with the change",
        scope=Scope.CONSENT,
    ),
    Spec(("--timeout",), "DUR", "Stop after this time, such as 30s"),
    Spec(("--version",), "", "Show the version and exit"),
)

NAMES: Final = frozenset(spec.names[-1][2:].replace("-", "_") for spec in SPECS)
"""The names of the options in :class:`rmqctl.cli.context.Cli`."""

ROW_OPTIONS: Final = ("columns", "where", "sort", "limit")
"""Those that say which rows are printed, and what of them. A format is none: a script may name it
for all of its calls."""


def is_everywhere(parameter: Any) -> bool:
    """Whether a parameter is a global option, and not a command's own option of the same name."""
    return parameter.name in NAMES and not parameter.expose_value


def global_options() -> list[TyperOption]:
    """A new set of parameters for one command."""
    return options_of(SPECS)


def options_of(specs: Iterable[Spec]) -> list[TyperOption]:
    """Parameters whose values go to the call's context, not to the command function."""
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
    """Store a given value in the call's context."""
    if value not in (None, False, ()) and not ctx.resilient_parsing:
        ctx.obj.remember(param.name, value)
    if param.name == "version" and not ctx.resilient_parsing:
        # Processed last of the eager options, as it is not given. So `-o help --by queue` explains
        # the rows of --by queue, and a missing argument is no error: nothing runs.
        ctx.obj.explain_fields(ctx)
    return value
