"""``rmqctl context``: named sets of settings, such as one per store."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import Changes, changes, uses_no_store
from rmqctl.errors import NotFound, PartlyDone, Refused, UsageProblem

from .contexts import context_rows
from .rows import ContextRow, SetSettingRow

_Project = Annotated[
    bool, typer.Option("--project", help="Use the file of the working folder or above")
]
_User = Annotated[bool, typer.Option("--user", help="Use the user's file (default)")]
_System = Annotated[bool, typer.Option("--system", help="Use the system's file")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The context")]


@prints(ContextRow)
@uses_no_store
def list_contexts(ctx: typer.Context) -> None:
    """List the contexts of all settings files.

    All contexts:              rmqctl context list
    Their names alone:         rmqctl context list --columns context --no-headers
    """
    cli = context_of(ctx)
    cli.rows(ContextRow, context_rows(cli.settings, _in_use(cli)))


@prints(ContextRow)
@uses_no_store
def show(
    ctx: typer.Context,
    context_name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Default: the one in use")
    ] = None,
) -> None:
    """Show all settings of a context; exit code 3 if no context is in use.

    The one in use:            rmqctl context show
    Another one:               rmqctl context show prod
    """
    cli = context_of(ctx)
    used = _in_use(cli)
    wanted = context_name if context_name is not None else used
    if wanted is None:
        raise NotFound("no context is in use; see 'rmqctl context list'")
    cli.one(_known(cli, wanted, used))


@prints(SetSettingRow)
@changes(Changes.PLANS)
@uses_no_store
def use(
    ctx: typer.Context,
    context_name: Annotated[str | None, typer.Argument(metavar="NAME", help="The context")] = None,
    none: Annotated[bool, typer.Option("--none", help="Use no context from now on")] = False,
    project: _Project = False,
    user: _User = False,
    system: _System = False,
) -> None:
    """Use a context from now on. Options and environment variables override its settings.

    From now on:               rmqctl context use prod
    For one command:           rmqctl topic list --context prod
    No context:                rmqctl context use --none
    """
    from . import settings_files as files
    from .settings_text import changed

    cli = context_of(ctx)
    if (context_name is None) != none:
        raise UsageProblem("missing argument 'NAME'" if context_name is None else "NAME and --none")
    if context_name is not None:
        _known(cli, context_name, None)
    layer = files.chosen_layer(project=project, user=user, system=system)
    path = files.chosen_file(cli, layer)
    text = files.read_text(path)
    old = files.said(path, text, None).get("context")
    files.replace_texts(cli, {path: changed(text, path.suffix, None, "context", context_name)})
    cli.one(SetSettingRow("context", files.shown(old), context_name, str(path), None))
    holds = cli.settings.get("context")
    if holds is not None and holds.origin != str(path) and holds.value != context_name:
        cli.warn(f"{holds.origin} may override {path}: it sets {holds.value}")


@prints(ContextRow)
@changes(Changes.PLANS)
@uses_no_store
def add(
    ctx: typer.Context,
    context_name: _Name,
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[SETTING=VALUE...]", help="Its settings")
    ] = None,
    project: _Project = False,
    user: _User = False,
    system: _System = False,
) -> None:
    """Add a context to a settings file.

    A name for a store:        rmqctl context add prod -S /data/prod/store
    With more settings:        rmqctl context add prod -S /data/prod/store tz=UTC no_input=true
    """
    from . import settings_files as files
    from .settings_text import changed, with_context

    cli = context_of(ctx)
    if not context_name.strip() or not context_name.isprintable():
        raise UsageProblem(f"{context_name!r} is not a valid context name")
    if any(row.context == context_name for row in context_rows(cli.settings, None)):
        raise Refused(
            f"context {context_name} exists; change it with "
            f"'rmqctl config set --context {context_name}'"
        )
    layer = files.chosen_layer(project=project, user=user, system=system)
    path = files.chosen_file(cli, layer)
    given = {}
    for text in (*(f"store={store}" for store in cli.given.get("store", ())), *(settings or ())):
        setting, equals, value = text.partition("=")
        setting = files.known_setting(setting)
        if not equals or setting == "context":
            raise UsageProblem(f"{text!r} is not SETTING=VALUE")
        if setting in given:
            raise UsageProblem(f"setting {setting} is given twice; give it once")
        given[setting] = files.setting_value(setting, value, path.parent)
    content = with_context(files.read_text(path), path.suffix, context_name)
    for setting, value in given.items():
        content = changed(content, path.suffix, context_name, setting, value)
    files.replace_texts(cli, {path: content})
    store = given.get("store")
    cli.one(
        ContextRow(context_name, False, None if store is None else str(store), [str(path)], given)
    )


@prints(ContextRow)
@changes(Changes.PLANS)
@uses_no_store
def remove(ctx: typer.Context, context_name: _Name) -> None:
    """Remove a context from every writable settings file that has it.

    A settings file that uses the context uses none afterwards.

    Preview:                   rmqctl context rm prod -n
    Remove it:                 rmqctl context rm prod
    """
    from . import settings_files as files
    from .settings_text import changed, without_context

    cli = context_of(ctx)
    row = _known(cli, context_name, _in_use(cli))
    new, users = {}, []
    for layer in cli.settings.layers():
        path = Path(layer.origin)
        text = old = files.read_text(path)
        if context_name in layer.contexts:
            text = without_context(text, path.suffix, context_name)
        if layer.values.get("context") == context_name:
            text = changed(text, path.suffix, None, "context", None)
            users.append(path)
        if text != old:
            new[path] = text
    failed = files.replace_texts(cli, new)
    for path in users:
        if path not in failed:
            cli.say(f"{path} no longer uses a context")
    cli.one(row._replace(files=[name for name in row.files if Path(name) not in failed]))
    if failed:
        raise PartlyDone(
            f"context {context_name} is removed from {len(new) - len(failed)} of {len(new)} "
            f"files: {'; '.join(map(str, failed.values()))}"
        )


def _in_use(cli: Cli) -> str | None:
    return cli.settings.context_name()


def _known(cli: Cli, name: str, used: str | None) -> ContextRow:
    for row in context_rows(cli.settings, used):
        if row.context == name:
            return row
    from difflib import get_close_matches

    near = get_close_matches(name, [row.context for row in context_rows(cli.settings, None)], 1)
    hint = f"; did you mean {near[0]!r}?" if near else " (see 'rmqctl context list')"
    raise NotFound(f"there is no context {name!r}{hint}")
