"""Changes of settings, refused while a Java broker has the store open."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rmqctl.admin.changes import Change
from rmqctl.admin.java_writers import refuse_beside_java

from .change_steps import carry_out, run_change
from .context import Cli

T = TypeVar("T")


def _beside_no_java(
    cli: Cli, root: Path, change: Callable[[], Iterable[T]]
) -> Callable[[], Iterable[T]]:
    """``change``, refused if a Java broker holds the store or writes to it (StoreInUseError, 5).

    Checks now, and again when the change begins. A dry run may run beside a Java broker.
    """
    if cli.flag("dry_run"):
        return change
    check = refuse_beside_java(root)

    def checked() -> Iterable[T]:
        check()
        return change()

    return checked


def change_settings(
    cli: Cli,
    root: Path,
    row_type: type,
    plan: Sequence[Any],
    change: Callable[[], Iterable[Any]],
    *,
    question: str,
    confirm_name: str | None = None,
    confirmed: str | None = None,
) -> None:
    """Plan, ask and change, as ``carry_out`` does; needs no --execute. Refused beside a Java
    broker."""
    carry_out(
        cli,
        row_type,
        plan,
        _beside_no_java(cli, root, change),
        question=question,
        execute_by_default=True,
        confirm_name=confirm_name,
        confirmed=confirmed,
    )


def run_guarded(cli: Cli, change: Change, *, confirmed: str | None = None) -> None:
    """Check, plan, ask and apply; needs no --execute. A dry run is not checked."""
    if not cli.flag("dry_run"):
        change.check()
    run_change(cli, change, execute_by_default=True, confirmed=confirmed)
