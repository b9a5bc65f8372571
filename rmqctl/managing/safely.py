"""Keeping changes away from a store that a Java broker has."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from rmqctl.changing.strangers import refuse_beside_java
from rmqctl.context import Cli

T = TypeVar("T")


def beside_no_java(
    cli: Cli, root: Path, change: Callable[[], Iterable[T]]
) -> Callable[[], Iterable[T]]:
    """``change``, refused if a Java broker holds the store or writes to it (StoreInUseError, 5).

    Looks now, and once more when the change begins. A dry run may look beside a Java broker.
    """
    if cli.flag("dry_run"):
        return change
    check = refuse_beside_java(root)

    def checked() -> Iterable[T]:
        check()
        return change()

    return checked
