"""``rmqctl config``: the program's own settings, their origins, and changes."""

import os
from collections.abc import Iterator
from typing import Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.log_format import TEXT
from rmqctl.cli.marks import Changes, changes, uses_no_store
from rmqctl.cli.settings import KEYS, VARIABLES, did_you_mean
from rmqctl.errors import NotFound, UsageProblem
from rmqctl.output.values import for_terminal

from .rows import SetSettingRow, SettingRow, SettingsFileRow

_Project = Annotated[
    bool, typer.Option("--project", help="Use the file of the working folder or above")
]
_User = Annotated[bool, typer.Option("--user", help="Use the user's file (default)")]
_System = Annotated[bool, typer.Option("--system", help="Use the system's file")]
_VARIABLE = "RMQCTL_"
_NO_SETTINGS = frozenset({*VARIABLES, "posix", "pure", "spark_jvm"})
"""Variables that have a meaning but are not settings of files."""


@prints(SettingRow)
def show(
    ctx: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="Show origins (always shown)")] = False,
) -> None:
    """Show all effective settings and the origin of each value.

    The order of precedence: options, the context of --context, the file of --config, environment
    variables, the context in use, the settings files, built-in defaults.

    All settings:              rmqctl config show
    As JSON:                   rmqctl config show -o json
    """
    cli = context_of(ctx)
    _warn_of_variables(cli)
    cli.rows(SettingRow, setting_rows(cli))


@prints(SettingRow)
@uses_no_store
def get(
    ctx: typer.Context, setting: Annotated[str, typer.Argument(metavar="SETTING", help="Which")]
) -> None:
    """Print the value of one setting; exit code 3 if nothing sets it.

    In a script:               rmqctl config get store
    """
    from .settings_files import known_setting

    cli = context_of(ctx)
    name = known_setting(setting)
    row = next(row for row in setting_rows(cli) if row.setting == name)
    if row.value is None:
        raise NotFound(f"{name} is not set: {KEYS[name][1]}")
    if "output" not in cli.given:  # in spite of the settings, as this is for scripts
        value = for_terminal(row.value) if cli.view.terminal else row.value
        cli.out.write(value + "\n")
    else:
        cli.one(row)


@prints(SetSettingRow)
@changes(Changes.PLANS)
@uses_no_store
def set_setting(
    ctx: typer.Context,
    setting: Annotated[str, typer.Argument(metavar="SETTING", help="Which")],
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="The new value")] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Remove it from the file")] = False,
    project: _Project = False,
    user: _User = False,
    system: _System = False,
) -> None:
    """Set a setting in a file. The rest of the file stays as it is, including comments.

    For this user:             rmqctl config set tz Europe/Berlin
    For this folder:           rmqctl config set store ./data --project
    In one context:            rmqctl config set tz UTC --context prod
    Remove a setting:          rmqctl config set tz --unset
    """
    from . import settings_files as files
    from .settings_text import changed

    cli = context_of(ctx)
    name = files.known_setting(setting)
    if (value is None) != unset:
        raise UsageProblem("missing argument 'VALUE'" if value is None else "VALUE and --unset")
    context = cli.given.get("context")
    if context is not None:
        cli.settings.context_layers()  # refuses an unknown context
        if name == "context":
            raise UsageProblem("a context cannot name another context")
    layer = files.chosen_layer(project=project, user=user, system=system)
    path = files.chosen_file(cli, layer, context)
    text = files.read_text(path)
    old = files.said(path, text, context).get(name)
    new = None if value is None else files.setting_value(name, value, path.parent)
    files.replace_texts(cli, {path: changed(text, path.suffix, context, name, new)})
    cli.one(SetSettingRow(name, files.shown(old), files.shown(new), str(path), context))
    if context is None:
        _warn_if_beaten(cli, name, str(path))


@prints(SettingsFileRow)
@uses_no_store
def path(ctx: typer.Context) -> None:
    """Show the settings files, the strongest first, including missing ones.

    All files:                 rmqctl config path
    Those that exist:          rmqctl config path --where 'exists = true'
    """
    cli = context_of(ctx)
    counts = {layer.origin: len(layer.values) for layer in cli.settings.layers()}
    cli.rows(
        SettingsFileRow,
        (
            SettingsFileRow(layer, str(file), exists, counts.get(str(file)))
            for layer, file, exists in cli.settings.places()
        ),
    )


def setting_rows(cli: Cli) -> Iterator[SettingRow]:
    """All settings of a call, with their origins."""
    from .settings_files import shown

    for name, (kind, meaning) in KEYS.items():
        value: str | None
        found = cli.settings.get(name)
        if name == "store":
            value, origin = str(cli.store.path), cli.store.origin
        elif found is not None:
            value, origin = shown(found.value), found.origin
        else:
            built_in = {
                "output": str(cli.view.format),
                "color": "auto",
                "progress": "auto",
                "log_format": TEXT,
            }
            value = built_in.get(name, "false" if kind is bool else None)
            origin = "built-in"
        yield SettingRow(name, value, origin, meaning)


def _warn_of_variables(cli: Cli) -> None:
    for variable in sorted(os.environ):
        name = variable.removeprefix(_VARIABLE).lower()
        if variable.startswith(_VARIABLE) and name not in KEYS and name not in _NO_SETTINGS:
            cli.warn(f"unknown variable {variable}{did_you_mean(name)}")


def _warn_if_beaten(cli: Cli, name: str, file: str) -> None:
    """Warn if a stronger layer than the changed file sets the same setting."""
    found = cli.settings.get(name)
    if found is None or found.origin == file:
        return
    order = [str(place.path) for place in cli.settings.places()]
    if found.origin in order and order.index(found.origin) > order.index(file):
        return
    cli.warn(f"{found.origin} overrides {file}")
