"""The forms of an export, written to a file message by message.

jsonl and csv have every field of a message row, raw has the records of the log, byte for byte and
without gaps, Parquet is for analytics and has bodies as bytes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from rmqctl.errors import CliError, UsageProblem
from rmqctl.output.message_rows import MessageRow, message_row
from rmqctl.output.saved_file import saved_file
from rmqctl.output.stdout import BytesOut, Out
from rmqctl.output.view import Format, View

if TYPE_CHECKING:
    from rmqctl.output.encoded_rows import Layout
    from rmqctl.output.row_block import RowBlock
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

_PIECE: Final = 1 << 20
"""Characters that are encoded at once."""
FORMS: Final = ("jsonl", "csv", "parquet", "raw")


class Writer(Protocol):
    """Writes messages one by one."""

    @property
    def count(self) -> int:
        """Number of messages that are written; those that a filter leaves out are not."""
        ...

    @property
    def full(self) -> bool:
        """Whether no further message is written."""
        ...

    def write(self, message: "MessageExt") -> None:
        """Add a message. Raises BodyError if its body cannot be inflated."""
        ...

    def layout(self) -> "Layout | None":
        """How rows are made for :meth:`write_rows`; None where messages are written."""
        ...

    def write_rows(self, rows: "RowBlock") -> None:
        """Add rows that the layout has made."""
        ...

    def finish(self) -> None:
        """Write what is buffered."""
        ...


class ByMessages:
    """A writer without rows, of every message that it is given."""

    count = 0
    full = False

    def layout(self) -> None:
        """See :class:`Writer`."""
        return

    def write_rows(self, rows: "RowBlock") -> None:
        """See :class:`Writer`."""
        raise NotImplementedError


class _File:
    """A file as output of the renderer."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.write_bytes = file.write

    def write(self, text: str, /) -> None:
        for start in range(0, len(text), _PIECE):
            piece = text[start : start + _PIECE]
            self._file.write(piece.encode("utf-8", "surrogateescape"))

    def flush(self) -> None:
        self._file.flush()


class RowWriter:
    """Rows in a format of the renderer."""

    def __init__(self, out: Out, view: View) -> None:
        from rmqctl.output.render import RowStream

        self._stream = RowStream(MessageRow, view, out)

    @property
    def count(self) -> int:
        """See :class:`Writer`; sorted rows are written at the end."""
        return self._stream.count

    @property
    def full(self) -> bool:
        """See :class:`Writer`."""
        return self._stream.full

    def write(self, message: "MessageExt") -> None:
        """Add a row."""
        self._stream.write((message_row(message),))

    def layout(self) -> "Layout | None":
        """See :class:`Writer`."""
        return self._stream.layout()

    def write_rows(self, rows: "RowBlock") -> None:
        """Add rows of the layout."""
        self._stream.write_encoded(rows)

    def finish(self) -> None:
        """The end of the output."""
        self._stream.finish()


class RawWriter(ByMessages):
    """Records with the exact bytes of the log."""

    def __init__(self, out: BytesOut, view: "StoreView") -> None:
        self._out = out
        self._log = view.files.apart().log

    def write(self, message: "MessageExt") -> None:
        """Add a record."""
        position = message.commitlog_offset % self._log.file_size
        file = self._log.at(message.commitlog_offset - position)
        if file is None:
            raise CliError(f"the log file of position {message.commitlog_offset} is gone")
        self._out.write_bytes(file.map[position : position + message.store_size])
        self.count += 1

    def finish(self) -> None:
        """Nothing is buffered."""


def form_of(name: str | None, path: str | None) -> str:
    """The named form, else the one of the file's suffix; UsageProblem for an unknown one."""
    if name is None:
        ending = Path(path).suffix[1:].lower() if path not in (None, "-") else ""
        name = {"ndjson": "jsonl", "log": "raw"}.get(ending, ending) or "jsonl"
        if name not in FORMS:
            raise UsageProblem(f"{path}: its form is unknown; use --as {'|'.join(FORMS)}")
    if name not in FORMS:
        raise UsageProblem(f"--as: {name!r} is not one of {', '.join(FORMS)}")
    return name


def writer_for(form: str, out: BytesOut, view: "StoreView", *, terminal: bool) -> Writer:
    """The writer of jsonl, csv or raw; for a ``terminal``, control characters are escaped."""
    if form == "raw":
        return RawWriter(out, view)
    every = View(Format(form), columns=MessageRow._fields, terminal=terminal)
    return RowWriter(out, every)


def writer_of_file(form: str, file: BinaryIO, view: "StoreView") -> Writer:
    """The writer of any form. CliError if Parquet's library is not installed."""
    if form == "parquet":
        from .parquet import ParquetMessages

        return ParquetMessages(file)
    return writer_for(form, _File(file), view, terminal=False)


@contextmanager
def saved_to(path: Path, *, dry_run: bool = False) -> Iterator[BinaryIO]:
    """A :func:`saved_file` of the option ``--save``; UsageProblem for an unsuitable path.

    In a dry run the output is discarded.
    """
    if path.is_dir():
        raise UsageProblem(f"--save: {path} is a folder, not a file")
    if str(path) == "-":
        raise UsageProblem("--save: '-' is not a file; omit --save to write to standard output")
    if not path.resolve().parent.is_dir() and not path.exists():
        raise UsageProblem(f"--save: there is no folder {path.parent}")
    if dry_run:
        with Path(os.devnull).open("wb") as nowhere:
            yield nowhere
        return
    with saved_file(path) as file:
        yield file
