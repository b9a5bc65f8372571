"""Combinations of options that ``consume`` refuses."""

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from rmqctl.errors import UsageProblem

from .body_forms import BODY_FORMS

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

_NEAR: Final = 0.75
"""Similarity of a short word with two swapped letters or one wrong letter."""


def check_committing(cli: "Cli", text: str | None) -> None:
    """Refuse options with which a group would acknowledge messages that were not shown.

    ``text`` is the text of ``--body``: with a misspelt form no message would match.
    """
    if cli.flag("dry_run"):
        raise UsageProblem(
            "a group acknowledges what it gets, so it has no dry run; --no-commit reads only"
        )
    if cli.view.sort:
        raise UsageProblem(
            "--sort prints after all is read, and a group acknowledges as it reads: add --no-commit"
        )
    if cli.view.where:
        raise UsageProblem(
            "a group would acknowledge rows that --where leaves out: use filters (--tag, --regex, "
            "--json-path ...), or add --no-commit"
        )
    near = get_close_matches((text or "").lower(), BODY_FORMS, 1, _NEAR)
    if near:
        raise UsageProblem(
            f"--body: {text!r} is not a form, did you mean {near[0]!r}? --regex finds a text"
        )


def check_shown(
    body_form: str | None, delimiter: str | None, *, template: bool, rows: bool
) -> None:
    """Refuse options that the way of printing would ignore; None is an option not given."""
    if template and body_form not in {None, "text"}:  # %s prints text
        hint = f": write %s{{{body_form}}}" if body_form in {"hex", "base64", "json"} else ""
        raise UsageProblem(f"--body {body_form} and --format exclude each other{hint}")
    if delimiter is not None and (template or rows):
        where = "with --format" if template else "in rows (-o, --with-meta, --columns ...)"
        raise UsageProblem(f"--delimiter is for bodies alone, not {where}")
