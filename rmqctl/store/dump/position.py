"""The piece at one log position of a store."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rmqctl.errors import NotFound

from .log import record_at, record_rows
from .rows import HexDump, RecordDump

if TYPE_CHECKING:
    from storage.readonly import StoreView


def piece_at(view: "StoreView", position: int) -> RecordDump:
    """The record or damage that begins at a position.

    NotFound outside of the log, and inside of a piece: the sentence gives its start.
    """
    low, high = view.log_min_offset(), view.log_max_offset()
    log = view.files.apart().log
    first = position - position % log.file_size
    file = log.at(first)
    outside = f"no record begins at {position}: the log of {view.root} spans {low} to {high}"
    if file is None:
        raise NotFound(outside)
    path = Path(log.path(first))
    whole = view.look_message_by_offset(position)
    if whole is not None and whole.commitlog_offset == position:
        return record_at(file, path, position - first)
    for piece in record_rows(file, path):
        if piece.position + piece.size <= position:
            continue
        if piece.kind == "EMPTY":
            break
        if piece.position == position:
            return piece
        if piece.position < position:
            raise NotFound(
                f"no record begins at log position {position}: it is within {piece.size} bytes "
                f"({piece.kind}) that begin at {piece.position}"
            )
    raise NotFound(outside)


def bytes_at(view: "StoreView", piece: RecordDump) -> Iterator[HexDump]:
    """The bytes of a piece, field by field; positions are log positions."""
    from .hex import HexDumper
    from .holes import Holes

    log = view.files.apart().log
    first = piece.position - piece.position % log.file_size
    file = log.at(first)
    assert file is not None  # it contains the piece
    holes = Holes(Path(log.path(first)), file.length)
    return HexDumper(file.view, holes, first).piece(piece, piece.position - first)
