"""A look at the contexts of the settings files."""

from collections.abc import Iterable
from typing import Any, Final

from rmqctl.config.contexts import context_rows
from rmqctl.config.rows import ContextRow

from .look import Look, Place, Source


def _contexts(source: Source, place: Place) -> Iterable[Any]:
    if source.settings is None:
        return ()
    return context_rows(source.settings, source.settings.context_name())


CONTEXTS: Final = Look(
    "contexts",
    ContextRow,
    _contexts,
    lambda place: ("context", "list"),
    ("context",),
    of_store=False,
)
