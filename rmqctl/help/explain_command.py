"""``rmqctl explain``: the meaning of a term, a code, a state, a setting or a field."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import uses_no_store
from rmqctl.errors import NotFound

from .rows import TermRow

if TYPE_CHECKING:
    from .terms import Term

_WIDTH = 100


@prints(TermRow)
@uses_no_store
def explain(
    ctx: typer.Context,
    term: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TERM|CODE]", help="The term to explain (default: list all)"),
    ] = None,
) -> None:
    """Explain a term of RocketMQ, a code, a state, a setting or a field.

    Case, blanks and underscores are ignored.

    A finding of fsck:         rmqctl explain UNIT_MISSING
    An exit code:              rmqctl explain 4
    A term:                    rmqctl explain half message
    How to write a time:       rmqctl explain time
    How to write a condition:  rmqctl explain where; rmqctl explain json-path
    All findings:              rmqctl explain --where 'kind = "finding of store fsck"'
    """
    from .terms import all_terms, find, nearest

    cli = context_of(ctx)
    question = " ".join(term or ())
    if not question:
        cli.rows(TermRow, map(_row, all_terms()))
        return
    found = find(question)
    if not found:
        near = nearest(question)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise NotFound(f"unknown term {question!r}{hint} ('rmqctl explain' lists all terms)")
    if cli.setting("output") is None:
        _tell(cli, found)
    else:
        cli.rows(TermRow, map(_row, found))


def _row(term: "Term") -> TermRow:
    forms = [f"{example}: {meaning}." for example, meaning in term.forms]
    text = " ".join([*term.text.splitlines(), *forms])
    return TermRow(term.term, term.kind, text, list(term.also), list(term.see))


def _tell(cli: Cli, terms: "Iterable[Term]") -> None:
    """The meanings as paragraphs."""
    from shutil import get_terminal_size

    from .paragraphs import paragraphs

    width = min(_WIDTH, get_terminal_size().columns)
    for place, term in enumerate(terms):
        cli.out.write(("\n" if place else "") + paragraphs(term, width))
