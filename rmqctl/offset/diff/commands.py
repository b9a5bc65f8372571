"""``rmqctl offset diff`` and ``offset export``: offsets beside others, and out of the store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.offsets.comparison_rows import ExportedOffset, OffsetDiffRow
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import open_for_reading
from rmqctl.cli.system_rows import tell_no_progress
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import NOT_WRITABLE
from rmqctl.output.view import Format
from rmqctl.parse.lists import parse_queues
from storage.counted import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqctl.output.view import View

_Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic; repeatable"),
]


@prints(OffsetDiffRow)
def diff(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="Group, file, store or @TIME")],
    second: Annotated[str, typer.Argument(metavar="B", help="What to compare it with")],
    group: Annotated[
        str | None, typer.Option("--group", "-g", metavar="GROUP", help="Only this group's offsets")
    ] = None,
    topic: _Topics = None,
    equal_too: Annotated[
        bool, typer.Option("--all", help="Queues that do not differ, too")
    ] = False,
) -> None:
    """Compare two groups, files, stores or times: the queues whose offsets differ.

    A file is what 'offset export' writes, a plan, a consumerOffset.json or an offsets.log. At a
    time an offset is known where the journal leaves no doubt; else the note says between what it
    lay. With group:, file: or store: before it a name is taken for just that.

    Two groups:                rmqctl offset diff readers readers2
    Since a backup:            rmqctl offset diff backup.csv readers
    A copy of the store:       rmqctl offset diff ../copy now
    Since yesterday:           rmqctl offset diff @-1d now -g readers
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin.offsets.comparison import diff as diff_rows

        from .sides import side_of

        a, b = side_of(cli, broker, first), side_of(cli, broker, second)
        for doubt in sorted({side.doubt for side in (a, b) if side.doubt is not None}):
            cli.warn(doubt)
        cli.rows(
            OffsetDiffRow, diff_rows(a, b, group=group, topics=topic or (), equal_too=equal_too)
        )


@prints(ExportedOffset)
@changes(Changes.PLANS)
def export(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP...]", help="Default: all")
    ] = None,
    topic: _Topics = None,
    queue: Annotated[
        str | None, typer.Option("--queue", "-Q", metavar="LIST", help="Only these, such as 0,2-4")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write there: .csv or .json")
    ] = None,
) -> None:
    """Print committed offsets as Kafka's tool does: topic,queue,offset, a line each, no head.

    Of several groups each line begins with the group. With -o the rows come as in any command.
    'rmqctl offset import' takes either back.

    One group:                 rmqctl offset export readers > readers.csv
    All, as JSON:              rmqctl offset export --save offsets.json
    """
    cli = context_of(ctx)
    form = _form(save)
    chosen = groups or []
    queues = None if queue is None else cli.parsed("--queue", parse_queues, queue)
    with open_for_reading(cli) as broker:
        from rmqctl.admin.offsets.comparison import export as export_rows

        rows = export_rows(
            broker.view, broker, groups=chosen, topics=topic or (), queues=queues, warn=cli.warn
        )
        if not rows and save is not None:
            raise NotFound(
                f"no group has any progress in {broker.view.root}, so {save} is not written"
            )
    if not rows:
        tell_no_progress(cli)
    names_groups = len(chosen) != 1
    if save is not None:
        _save(cli, save, form, rows, names_groups=names_groups)
    elif cli.setting("output") is not None:
        cli.rows(ExportedOffset, rows)
    else:
        cli.out.write(_text(cli.view, Format.CSV, rows, names_groups=names_groups)[0])


def _form(save: Path | None) -> Format:
    endings = {".csv": Format.CSV, ".json": Format.JSON}
    if save is None:
        return Format.CSV
    if save.suffix.lower() not in endings:
        raise UsageProblem(f"--save: {str(save)!r} ends neither in .csv nor in .json")
    return endings[save.suffix.lower()]


def _text(
    view: "View", form: Format, rows: "Sequence[ExportedOffset]", *, names_groups: bool
) -> tuple[str, int]:
    """The text of an export, and how many rows it has."""
    from io import StringIO

    from rmqctl.output.render import render_rows

    view = view._replace(format=form, headers=False)
    if form is Format.CSV and not view.columns:
        view = view._replace(columns=_columns(names_groups=names_groups))
    out = StringIO(newline="")
    count = render_rows(ExportedOffset, rows, view, out)
    return out.getvalue(), count


def _columns(*, names_groups: bool) -> tuple[str, ...]:
    """The columns of Kafka's file."""
    return ExportedOffset._fields[0 if names_groups else 1 :]


def _save(
    cli: Cli,
    path: Path,
    form: Format,
    rows: "Sequence[ExportedOffset]",
    *,
    names_groups: bool,
) -> None:
    """Replace the file in one step: a reader finds the old or the new one."""
    from rmqctl.output.saved_file import saved_file

    view = cli.view._replace(terminal=False, color=False)
    text, count = _text(view, form, rows, names_groups=names_groups)
    dry = cli.flag("dry_run")
    try:
        path.parent.stat()
        if not dry:
            with saved_file(path) as file:
                file.write(text.encode())
    except OSError as error:
        raise CliError(f"{path} can not be written: {error.strerror}", NOT_WRITABLE) from error
    done = "dry run: would write" if dry else "wrote"
    total = counted(len(rows), "offset")
    if count < len(rows):
        options = " and ".join(f"--{name}" for name in ("where", "limit") if name in cli.given)
        cli.warn(f"{done} {count} of {total} to {path}: {options} left out the others")
    else:
        cli.say(f"{done} {total} to {path}")
    needed = _columns(names_groups=names_groups)
    if view.columns and not _is_importable(view, form, needed):
        cli.warn(f"'offset import' needs {', '.join(needed)} in {path}: omit --columns for that")


def _is_importable(view: "View", form: Format, needed: tuple[str, ...]) -> bool:
    """Whether the columns of the view have what is needed, in CSV in their order."""
    from rmqctl.output.fields import fields_of
    from rmqctl.output.shaping import chosen_fields

    names = tuple(field.name for field in chosen_fields(fields_of(ExportedOffset), view))
    if form is Format.CSV:
        return names in (needed, ExportedOffset._fields)
    return set(names) >= set(needed)
