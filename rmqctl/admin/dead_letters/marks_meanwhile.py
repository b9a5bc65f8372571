"""Marks that other commands set while a redrive runs: those dead letters are not sent."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from storage.configs.config_file import ident_of
from storage.configs.dlq_acks import NOTHING_HANDLED, DlqAcksFile

from .dead_letters import Place

if TYPE_CHECKING:
    from storage.readonly import StoreView


class MarksMeanwhile:
    """The marks of a dead letter topic as they are at each question, without those of ``before``.

    The file is read again only after it was replaced.
    """

    def __init__(self, view: "StoreView", topic: str, before: Collection[Place]) -> None:
        self._file = DlqAcksFile(view.root, view)
        self._topic = topic
        self._before = before
        self._read()

    def __contains__(self, place: Place) -> bool:
        """Raises CorruptFileError and StoreVersionError."""
        if ident_of(self._file.path) != self._ident:
            self._read()
        queue_id, offset = place
        is_marked = offset in self._marks.get(queue_id, NOTHING_HANDLED)
        return is_marked and place not in self._before

    def _read(self) -> None:
        self._ident = ident_of(self._file.path)  # first: what is replaced meanwhile is read again
        self._marks = self._file.read(self._topic)
