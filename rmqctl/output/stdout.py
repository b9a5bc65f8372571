"""Standard output, as text and as bytes, buffered, with errors that name it."""

import io
import os
from typing import Any, Final, Protocol, TextIO

from rmqctl.errors import CliError
from rmqctl.output.last_line import LAST_LINE

_BUFFER_BYTES: Final = 1 << 16


class Out(Protocol):
    """Where text goes to."""

    def write(self, text: str, /) -> Any:
        """Add text."""
        ...

    def flush(self) -> Any:
        """Have the reader see everything so far."""
        ...


class Stdout:
    """Text and bytes to one stream, in the order in which they were written.

    A closed pipe stays a BrokenPipeError, which is silent; any other failure becomes a
    :class:`CliError` that says that it was the output and not the store.
    """

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        buffer: Any = stream.buffer
        if isinstance(buffer, io.RawIOBase):  # python -u: a raw write may be a part of the data
            # Our buffer goes before the stream does, and must not close it.
            own = io.FileIO(buffer.fileno(), "wb", closefd=False)
            buffer = io.BufferedWriter(own, _BUFFER_BYTES)
        self._buffer = buffer
        self._on_terminal = stream.isatty()

    def write(self, text: str, /) -> None:
        """Add text as UTF-8; bytes that came in as surrogates go out as they were."""
        self.write_bytes(text.encode("utf-8", "surrogateescape"))

    def write_bytes(self, data: bytes) -> None:
        """Add bytes; on a terminal they are seen at once."""
        if self._on_terminal and data:
            LAST_LINE.beside(lambda: self._show(data), ends_line=data.endswith(b"\n"))
        else:
            self._write(data)

    def flush(self) -> None:
        """Have the reader see everything so far."""
        try:
            self._buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _output_error(error) from error

    def _show(self, data: bytes) -> None:
        self._write(data)
        self.flush()

    def _write(self, data: bytes) -> None:
        try:
            self._buffer.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _output_error(error) from error


def _output_error(error: OSError) -> CliError:
    return CliError(f"standard output: {os.strerror(error.errno or 0)}")
