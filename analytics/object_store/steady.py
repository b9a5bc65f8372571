"""Reading a folder that is filled on demand: again and again, until all was there.

Where a reader looks depends on what it has read. So it is called, what it has looked at is fetched,
and it is called again, as long as it looks at something that was not there. An answer counts if
every page that was looked at for it had been fetched before.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from analytics.errors import ObjectStoreError

if TYPE_CHECKING:
    from .store_copy import StoreCopy

T = TypeVar("T")
_MOST_ROUNDS: Final = 400
_LOGGERS: Final = ("rmqctl.datasource", "rmqctl.storage")


def steadily(copies: Sequence[StoreCopy], make: Callable[[], Iterator[T]]) -> Iterator[T]:
    """What an iterator over folders gives, as soon as all that it has looked at was there.

    ``make`` is called anew after each look at something that was not there, and gives the same then
    for the same files. What it warns of and logs counts once.
    """
    given = rounds = 0
    while rounds < _MOST_ROUNDS:
        rounds += 1
        number = 0
        items = make()
        while True:
            failure: Exception | None = None
            found: list[T] = []
            with _held_back() as said:
                try:
                    found = list(islice(items, 1))
                except Exception as error:  # noqa: BLE001 - perhaps of a place that is not there yet
                    failure = error
            fetched = [copy.fetch_missing() for copy in copies]
            if any(fetched):
                break
            if number >= given:
                said.release(copies)
            if failure is not None:
                raise failure
            if not found:
                return
            if number >= given:
                given, rounds = number + 1, 0
                yield found[0]
            number += 1
    where = ", ".join(copy.shown for copy in copies)
    raise ObjectStoreError(f"{where}: after {_MOST_ROUNDS} requests one after the other it goes on")


def run(copies: Sequence[StoreCopy], work: Callable[[], T]) -> T:
    """The same for a function; gives its last answer."""
    (answer,) = steadily(copies, lambda: (one() for one in (work,)))
    return answer


class _Said:
    """Warnings and lines of the log, until it is known whether they count."""

    def __init__(self) -> None:
        self.warned: list[warnings.WarningMessage] = []
        self.logged: list[logging.LogRecord] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a line of the log back: the form of ``logging.Filter``."""
        self.logged.append(record)
        return False

    def release(self, copies: Sequence[StoreCopy]) -> None:
        """Say all of it now, about addresses instead of folders."""

        def of_address(text: str) -> str:
            for copy in copies:
                text = copy.renamed(text)
            return text

        for one in self.warned:
            text = of_address(str(one.message))
            warnings.warn_explicit(text, one.category, one.filename, one.lineno)
        for record in self.logged:
            record.msg, record.args = of_address(record.getMessage()), ()
            logging.getLogger(record.name).handle(record)


@contextmanager
def _held_back() -> Iterator[_Said]:
    said = _Said()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for one in loggers:
        one.addFilter(said)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield said
            said.warned = list(warned)
    finally:
        for one in loggers:
            one.removeFilter(said)
