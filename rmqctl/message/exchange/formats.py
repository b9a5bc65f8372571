"""The forms of an export, each written to a file as messages come.

jsonl and csv hold every field of a message row, raw holds the records of the log byte by byte, one
behind the other, Parquet is for analytics and has bodies as bytes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from rmqctl.errors import CliError, UsageProblem
from rmqctl.message.rows import MessageRow, message_row
from rmqctl.output.saved_file import saved_file
from rmqctl.output.stdout import Out
from rmqctl.output.view import Format, View

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

FORMS: Final = ("jsonl", "csv", "parquet", "raw")


class Writer(Protocol):
    """Takes messages one after the other."""

    def write(self, message: "MessageExt") -> None:
        """Add a message. Raises BodyError if its body can not be inflated."""
        ...

    def finish(self) -> None:
        """Write what is still held."""
        ...


class BytesOut(Out, Protocol):
    """Where text and bytes go to."""

    def write_bytes(self, data: bytes) -> Any:
        """Add bytes."""
        ...


class _File:
    """A file as the renderer wants its output."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.write_bytes = file.write

    def write(self, text: str, /) -> None:
        self._file.write(text.encode("utf-8", "surrogateescape"))

    def flush(self) -> None:
        self._file.flush()


class RowWriter:
    """Rows in a format of the program's one renderer."""

    def __init__(self, out: Out, view: View) -> None:
        from rmqctl.output.render import RowStream

        self._stream = RowStream(MessageRow, view, out)

    def write(self, message: "MessageExt") -> None:
        """Add a row."""
        self._stream.write((message_row(message),))

    def finish(self) -> None:
        """What stands behind the last row."""
        self._stream.finish()


class RawWriter:
    """Records as they lie in the log."""

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

    def finish(self) -> None:
        """Nothing is held."""


def form_of(name: str | None, path: str | None) -> str:
    """The form that was named, else that of the file's ending; UsageProblem for another one."""
    if name is None:
        ending = Path(path).suffix[1:].lower() if path not in (None, "-") else ""
        name = {"ndjson": "jsonl", "log": "raw"}.get(ending, ending) or "jsonl"
        if name not in FORMS:
            raise UsageProblem(f"{path}: say which form it has, --as {'|'.join(FORMS)}")
    if name not in FORMS:
        raise UsageProblem(f"--as: {name!r} is not one of {', '.join(FORMS)}")
    return name


def writer_for(form: str, out: BytesOut, view: "StoreView", *, terminal: bool) -> Writer:
    """The writer of jsonl, csv or raw; no message commands a ``terminal``."""
    if form == "raw":
        return RawWriter(out, view)
    every = View(Format(form), columns=MessageRow._fields, terminal=terminal)
    return RowWriter(out, every)


def writer_of_file(form: str, file: BinaryIO, view: "StoreView") -> Writer:
    """The writer of any form. CliError where Parquet's library is not installed."""
    if form == "parquet":
        from .parquet import ParquetMessages

        return ParquetMessages(file)
    return writer_for(form, _File(file), view, terminal=False)


@contextmanager
def saved_to(path: Path, *, dry_run: bool = False) -> Iterator[BinaryIO]:
    """A :func:`saved_file` of an option ``--save``; UsageProblem if it can not be one.

    In a dry run what is written to it goes nowhere.
    """
    if path.is_dir():
        raise UsageProblem(f"--save: {path} is a folder, not a file")
    if str(path) == "-":
        raise UsageProblem("--save: '-' is no file; without --save it goes to standard output")
    if not path.resolve().parent.is_dir() and not path.exists():
        raise UsageProblem(f"--save: there is no folder {path.parent}")
    if dry_run:
        with Path(os.devnull).open("wb") as nowhere:
            yield nowhere
        return
    with saved_file(path) as file:
        yield file
