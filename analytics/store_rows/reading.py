"""Reading one of the tables of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.embedded.broker import EmbeddedBroker

from .changes import change_rows
from .dead_letters import dead_letter_rows
from .delayed import delayed_rows
from .groups import group_rows
from .retries import retry_rows
from .topics import topic_rows
from .transactions import transaction_rows

if TYPE_CHECKING:
    from .row_types import StoreRow
    from .wanted import Wanted

Producer: TypeAlias = "Callable[[EmbeddedBroker, str, Wanted], Iterator[StoreRow]]"
_PRODUCERS: Final[Mapping[str, Producer]] = {
    "delayed": delayed_rows,
    "transactions": transaction_rows,
    "retries": retry_rows,
    "deadletters": dead_letter_rows,
    "groups": group_rows,
    "topics": topic_rows,
    "changes": change_rows,
}


def store_rows(table: str, path: str, name: str, wanted: Wanted) -> Iterator[StoreRow]:
    """The rows of a table of the store in a folder, whose broker is to be called ``name``.

    Nothing is written and no lock is taken. Raises the errors of ``StoreView.open``, and
    CorruptFileError where a file that is needed cannot be read.
    """
    with EmbeddedBroker.open(path, read_only=True) as broker:
        yield from _PRODUCERS[table](broker, name, wanted)
