"""Standard output for text and bytes, buffered; its errors name it."""

import io
import os
import re
from typing import Any, Final, Protocol, TextIO, runtime_checkable

from rmqctl.errors import OutputFailed
from rmqctl.output.last_line import LAST_LINE

_BUFFER_BYTES: Final = 1 << 16
_PIECE: Final = 1 << 20
"""Characters that are encoded at once."""
_NO_TEXT: Final = "[\ud800-\udc7f\udd00-\udfff]"


class Out(Protocol):
    """A sink for text."""

    def write(self, text: str, /) -> Any:
        """Add text."""
        ...

    def flush(self) -> Any:
        """Make all output so far visible to the reader."""
        ...


@runtime_checkable
class BytesOut(Out, Protocol):
    """A sink that takes bytes, too."""

    def write_bytes(self, data: bytes | memoryview, /) -> Any:
        """Add bytes."""
        ...


def encoded(text: str) -> bytes:
    """Text as UTF-8; surrogate escapes become the original bytes.

    Half of a surrogate pair, which an escape in JSON can make, becomes ``?`` as in Java.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return re.sub(_NO_TEXT, "?", text).encode("utf-8", "surrogateescape")


class Stdout:
    """Writes text and bytes to one stream, in order.

    A closed pipe stays a BrokenPipeError, which is silent. Any other failure becomes a
    :class:`OutputFailed` that names the output, not the store.
    """

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        buffer: Any = stream.buffer
        if isinstance(buffer, io.RawIOBase):  # python -u: a raw write may write a part of the data
            # This buffer is released before the stream and must not close it.
            own = io.FileIO(buffer.fileno(), "wb", closefd=False)
            buffer = io.BufferedWriter(own, _BUFFER_BYTES)
        self._buffer = buffer
        self._on_terminal = stream.isatty()

    def write(self, text: str, /) -> None:
        """Add text, as :func:`encoded`."""
        for start in range(0, len(text), _PIECE):
            piece = text if len(text) <= _PIECE else text[start : start + _PIECE]
            self.write_bytes(encoded(piece))

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Add bytes; on a terminal they are flushed at once."""
        if self._on_terminal and data:
            LAST_LINE.beside(lambda: self._show(data), ends_line=data[-1:] == b"\n")
        else:
            self._write(data)

    def flush(self) -> None:
        """Make all output so far visible to the reader."""
        try:
            self._buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _output_error(error) from error

    def _show(self, data: bytes | memoryview) -> None:
        self._write(data)
        self.flush()

    def _write(self, data: bytes | memoryview) -> None:
        try:
            self._buffer.write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _output_error(error) from error


def _output_error(error: OSError) -> OutputFailed:
    return OutputFailed(f"standard output: {os.strerror(error.errno or 0)}")
