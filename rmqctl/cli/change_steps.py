"""Running a change on a terminal: show the plan, ask, apply, show the result."""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from rmqctl.admin.changes import Change, JavaCheck, Outcome
from rmqctl.admin.journal_entry import change_note
from rmqctl.errors import CliError, OutputFailed, PartlyDone, Refused
from rmqctl.output.last_line import LAST_LINE
from rmqctl.output.view import Format, View

from .context import Cli

APPLIED: Final = "applied"
"""The field of a result row that says whether it was done."""


def run_change(
    cli: Cli,
    change: Change,
    *,
    summary: Iterable[str] = (),
    confirmed: str | None = None,
    shows_refused: bool = False,
) -> bool:
    """Print the plan, ask, do it, print what was done; gives whether anything was.

    The rule of consent, the same for every command that changes something:

    * ``--dry-run`` shows the plan and ends.
    * ``--yes`` applies it without a question.
    * On a terminal the plan is shown there, and a person is asked.
    * Elsewhere nothing is changed: the plan is shown, and the call is Refused (7).
    * With ``confirm_name`` a yes is not enough: that name must be ``confirmed`` (what the command's
      ``--confirm`` gave) or typed.

    Standard output gets one table: the result, or the plan if nothing was done. An empty plan is
    nothing to do. A change that leaves everything as it is only shows its rows.

    ``summary`` are more sentences below the plan than the change's own; its first refusal is raised
    there. With ``shows_refused`` a call that may not apply the change says it without an error.

    The result rows are printed as they come. A row whose field ``applied`` is False makes this
    PartlyDone (8); where all are, and none was done in part, it is CliError (1).
    """
    if not change.has_effect:
        if will_execute(cli):
            cli.rows(change.result_type, change.unchanged_rows())
        else:
            _print_plan(cli, change.row_type, change.result_type, change.plan)
        _say_below(cli, change, summary)
        cli.say("there is nothing to change")
        return False
    return _run(
        cli,
        change,
        lambda: change.apply(change_note(cli)),
        summary=summary,
        shows_refused=shows_refused,
        confirmed=confirmed,
    )


def _run(
    cli: Cli,
    change: Change,
    apply: Callable[[], Outcome],
    *,
    summary: Iterable[str] = (),
    shows_refused: bool = False,
    confirmed: str | None,
) -> bool:
    _check_mark(cli)
    plan, result_type = change.plan, change.result_type
    executes = will_execute(cli)
    if executes:
        cli.check_view(result_type)  # a wrong view must not show after the change
    only_shown = shows_refused and not executes and bool(change.refusals)
    if not executes or not plan or change.refusals:
        _print_plan(cli, change.row_type, result_type, plan)
        cli.out.flush()
        if plan:
            _say_store(cli)
        _say_below(cli, change, summary, refuses=not only_shown)
        if only_shown:
            cli.say(str(change.refusals[0]))
        elif not plan:
            cli.say("there is nothing to change")
        elif cli.flag("dry_run"):
            cli.say("dry run: nothing was changed")
        else:
            refuse_without_consent(change.confirm_name, confirmed)
        return False
    _ask(cli, change, summary, confirmed)
    _say_store(cli)
    outcome = apply()
    if outcome.change_id is not None and change.undone_by_number:
        cli.say(
            f"this is change {outcome.change_id}; "
            f"'rmqctl offset undo {outcome.change_id}' takes it back"
        )
    total, refused = _print_result(cli, change, outcome.rows)
    if refused and refused == total and not change.has_part_rows:
        raise CliError(f"none of {total} done; the rows show why")
    if refused:
        raise PartlyDone(f"{refused} of {total} not done; the rows show which")
    return True


def _ask(cli: Cli, change: Change, summary: Iterable[str], confirmed: str | None) -> None:
    """Get consent by options, or show the plan on the terminal and ask there. Raises Refused."""
    name = change.confirm_name
    _check_name(name, confirmed)
    if cli.given.get("yes") and (name is None or confirmed is not None):
        _say_below(cli, change, summary)
        cli.confirm(change.question)
        return
    if not can_ask(cli):  # with --yes, but without the name
        _print_plan(cli, change.row_type, change.result_type, change.plan)
        cli.out.flush()
        _say_below(cli, change, summary)
        refuse_without_consent(name, confirmed)
    _show_on_terminal(cli, change)
    _say_below(cli, change, summary)
    try:
        if name is None or confirmed is not None:
            cli.confirm(change.question)
        else:
            _confirm_name(cli, change.question, name)
    except Refused:
        if not sys.stdout.isatty():
            _print_plan(cli, change.row_type, change.result_type, change.plan)
        raise


def refuse_without_consent(name: str | None = None, confirmed: str | None = None) -> NoReturn:
    """Refuse (7) a change for which a person would have to be asked."""
    _check_name(name, confirmed)
    options = "--yes" if name is None or confirmed is not None else f"--confirm {name} --yes"
    raise Refused(f"nothing was changed: no terminal to ask on; add {options} to proceed")


def _check_name(name: str | None, confirmed: str | None) -> None:
    if name is not None and confirmed not in {None, name}:
        raise Refused(f"{confirmed!r} is not {name!r}; nothing was changed")


def _say_below(cli: Cli, change: Change, summary: Iterable[str], *, refuses: bool = True) -> None:
    """Print the sentences about the plan, and raise what forbids it."""
    for sentence in (*change.summary, *summary):
        cli.say(sentence)
    if refuses:
        change.refuse()


def run_creation(cli: Cli, change: Change) -> None:
    """Apply a change that is not asked about and print its rows; with ``--dry-run`` the plan's."""
    _check_mark(cli)
    dry = cli.flag("dry_run")
    rows = change.plan if dry else list(change.apply(change_note(cli)).rows)
    if dry:
        _say_store(cli)
    shown = cli.rows(change.result_type, rows)
    _tell_hidden(cli, "plan" if dry else "result", shown, len(rows))
    for sentence in change.summary:
        cli.warn(sentence)
    if dry:
        cli.say("dry run: nothing was created")


def _check_mark(cli: Cli) -> None:
    assert cli.changes is not None, "mark the command with rmqctl.cli.marks.changes"


def will_execute(cli: Cli) -> bool:
    """Whether this call may apply the change: with ``--yes``, or where a person can be asked."""
    return not cli.flag("dry_run") and (bool(cli.given.get("yes")) or can_ask(cli))


def can_ask(cli: Cli) -> bool:
    """Whether there is a terminal to ask on."""
    return not cli.flag("no_input") and sys.stdin.isatty() and sys.stderr.isatty()


def begin_java_check(cli: Cli, root: Path) -> JavaCheck:
    """The check for a Java broker, begun now if the call writes; a dry run needs none."""
    if will_execute(cli):
        from rmqctl.admin.java_writers import refuse_beside_java

        return refuse_beside_java(root)
    return lambda: None


def _say_store(cli: Cli) -> None:
    """Print the store of a plan, and where its name came from."""
    if cli.uses_store:
        cli.say(f"store {cli.store.path} ({cli.store.origin})")


def _print_plan(cli: Cli, row_type: type, result_type: type, plan: Sequence[Any]) -> None:
    """Print the plan, without columns that only the result has and a condition on them."""
    from rmqctl.output.render import render_rows

    view = _plan_view(cli.view, row_type, result_type)
    _tell_hidden(cli, "plan", render_rows(row_type, plan, view, cli.out), len(plan))


def _plan_view(view: View, row_type: type, result_type: type) -> View:
    """The view without the columns that only the result has, and without a condition on them."""
    from rmqctl.output.fields import fields_of
    from rmqctl.output.shaping import condition_of

    own = fields_of(row_type)
    names = {field.name for field in own}
    more = [field for field in fields_of(result_type) if field.name not in names]
    later = {field.name for field in more}

    def known(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(n for n in names if n.lstrip("+-").replace("-", "_").lower() not in later)

    condition = condition_of([*own, *more], view)
    if condition is not None and not later.isdisjoint(condition.names):
        view = view._replace(where=None)
    return view._replace(columns=known(view.columns), sort=known(view.sort))


def _tell_hidden(cli: Cli, what: str, shown: int, total: int) -> None:
    """Warn that options hide rows: they choose which rows are shown, not what is done."""
    if shown < total:
        cli.warn(f"{total - shown} of {total} rows of the {what} are not shown, but belong to it")


def _show_on_terminal(cli: Cli, change: Change) -> None:
    from rmqctl.output.render import render_rows

    if LAST_LINE.writes_json():
        for row in change.plan:
            LAST_LINE.print("planned", fields={"row": row})
        return
    view = cli.view._replace(format=Format.TABLE, terminal=True, color=cli.colored(sys.stderr))
    view = _plan_view(view, change.row_type, change.result_type)
    render_rows(change.row_type, change.plan, view, sys.stderr)


def _confirm_name(cli: Cli, question: str, name: str) -> None:
    LAST_LINE.ask(f"{cli.target_of(question)} Type {name} to go on: ")
    given = sys.stdin.readline().strip()
    if given != name:
        raise Refused(f"{given!r} is not {name!r}; nothing was changed")


def _print_result(cli: Cli, change: Change, rows: Iterable[Any]) -> tuple[int, int]:
    """Print rows as they come; gives how many there were and how many of them were not done.

    Where the output fails the change goes on to its end: PartlyDone (8) says so, unless nothing was
    done.
    """
    stream = cli.row_stream(change.result_type)
    total = refused = 0
    rows = iter(rows)
    try:
        for row in rows:
            total += 1
            refused += getattr(row, APPLIED, None) is False
            stream.write([row])
        stream.finish()
        cli.out.flush()
    except OutputFailed as error:
        for row in rows:
            total += 1
            refused += getattr(row, APPLIED, None) is False
        if refused == total and not change.has_part_rows:
            raise
        raise PartlyDone(f"{error}; {total - refused} of {total} are done all the same") from error
    except BaseException:
        if total:
            stream.finish()  # what was done so far
        raise
    _tell_hidden(cli, "result", stream.count, total)
    return total, refused
