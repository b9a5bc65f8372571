"""Printing of messages by ``consume``: bodies alone, a template, or rows."""

import base64
import binascii
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, cast

from rmqctl.output.message_rows import json_body, json_message_row, message_row
from rmqctl.output.row_block import RowBlock, RowText
from rmqctl.output.stdout import Stdout
from storage.format.sys_flag import MessageSysFlag

if TYPE_CHECKING:
    from rmqctl.output.encoded_rows import Layout
    from rmqctl.output.render import RowStream
    from rmqctl.parse.templates import OutputTemplate
    from storage.format.message import MessageExt


class Printer(Protocol):
    """Prints fetched messages, or what it needs of them."""

    needs_messages: bool
    """Whether it needs messages, not only bodies."""

    @property
    def layout(self) -> "Layout | None":
        """How rows are made without messages: then it takes a RowBlock, too, and a RowText instead
        of a message. None where it cannot be.
        """
        ...

    @property
    def full(self) -> bool:
        """Whether it prints no further message."""
        ...

    def write(self, items: Sequence[Any]) -> None:
        """Print all, or raise BodyError and print none."""
        ...

    def flush(self) -> None:
        """Make all output so far visible to the reader."""
        ...

    def finish(self) -> None:
        """Print the end of the output."""
        ...


class BodyPrinter:
    """Bodies alone, each followed by the delimiter."""

    needs_messages = False
    full = False

    def __init__(
        self,
        out: Stdout,
        delimiter: bytes,
        form: str,
        shield: Callable[[bytes], bytes] | None = None,
        nothing: Callable[[], None] | None = None,
    ) -> None:
        """Print to ``out``; for a terminal, ``shield`` is applied to each body, and ``nothing`` is
        called at the end if there was none."""
        self._nothing = nothing
        self._out = out
        self._delimiter = delimiter
        self._shape = _SHAPES[form] or shield
        self._silent = form == "none"

    @property
    def layout(self) -> "Layout | None":
        """See :class:`Printer`."""
        if self._shape is not None or self._silent:
            return None
        from rmqctl.output.encoded_rows import layout_of_bodies  # lazy: for many messages

        return layout_of_bodies(self._delimiter)

    def write(self, items: "Sequence[bytes | MessageExt]") -> None:
        """Print bodies; of messages, theirs."""
        if not items:
            return
        self._nothing = None
        if self._silent:
            return
        if type(items) is RowBlock:
            self._out.write_bytes(items.text)
            return
        types = set(map(type, items))
        if RowText in types:
            end = self._delimiter
            self._out.write_bytes(
                b"".join([item if type(item) is RowText else _body(item) + end for item in items])
            )
            return
        bodies = cast("Sequence[bytes]", items) if types == _BYTES else _bodies(items)
        if self._shape is not None:
            bodies = list(map(self._shape, bodies))
        self._out.write_bytes(self._delimiter.join(bodies))
        self._out.write_bytes(self._delimiter)

    def flush(self) -> None:
        """Flush stdout."""
        self._out.flush()

    def finish(self) -> None:
        """Say if there was no body."""
        if self._nothing is not None:
            self._nothing()


_BYTES = {bytes}
_PACKED = MessageSysFlag.COMPRESSED_FLAG
_SYS_FLAG = attrgetter("sys_flag")
_STORED = attrgetter("stored_body")


def _body(item: "bytes | MessageExt") -> bytes:
    return item if isinstance(item, bytes) else item.body


def _bodies(items: "Sequence[Any]") -> list[bytes]:
    try:
        packed = any(flag & _PACKED for flag in set(map(_SYS_FLAG, items)))
    except AttributeError:  # some are bodies
        packed = True
    return list(map(_body if packed else _STORED, items))


def _is_row(item: object) -> bool:
    return type(item) is RowText


_SHAPES: dict[str, Callable[[bytes], bytes] | None] = {
    "text": None,
    "none": None,
    "json": lambda body: json_body(body).encode("utf-8", "surrogateescape"),
    "hex": binascii.hexlify,
    "base64": base64.b64encode,
}


class TemplatePrinter:
    """Each message by a ``-f`` template."""

    needs_messages = True
    full = False

    def __init__(
        self,
        out: Stdout,
        template: "OutputTemplate",
        layout: "Callable[[], Layout | None]",
        nothing: Callable[[], None] | None = None,
    ) -> None:
        """Print to ``out``; ``nothing`` is called at the end if there was no message."""
        self._nothing = nothing
        self._out = out
        self._template = template
        self._layout = layout

    @property
    def layout(self) -> "Layout | None":
        """See :class:`Printer`."""
        return self._layout()

    def write(self, items: "Sequence[bytes | MessageExt]") -> None:
        """Print messages, or their text."""
        if items:
            self._nothing = None
        if type(items) is RowBlock:
            self._out.write_bytes(items.text)
            return
        self._out.write_bytes(self._template.join(items))

    def flush(self) -> None:
        """Flush stdout."""
        self._out.flush()

    def finish(self) -> None:
        """Say if there was no message."""
        if self._nothing is not None:
            self._nothing()


class RowPrinter:
    """Each message as a row of fields, in the format of ``-o``."""

    needs_messages = True

    def __init__(self, stream: "RowStream", form: str, *, values: bool = False) -> None:
        """Bodies in a form; with ``values``, JSON bodies are values and not texts."""
        self._stream = stream
        self._form = form
        self._values = values

    @property
    def layout(self) -> "Layout | None":
        """See :class:`Printer`."""
        return None if self._values or self._form != "text" else self._stream.layout()

    @property
    def full(self) -> bool:
        """Whether ``--limit`` is reached."""
        return self._stream.full

    def write(self, items: "Sequence[bytes | MessageExt]") -> None:
        """Print messages, or rows of the layout."""
        if type(items) is RowBlock:
            self._stream.write_encoded(items)
            return
        # All rows are made before the first is printed: a body may be one that cannot be inflated.
        made = [
            (are_rows, list(group if are_rows else map(self._row, cast("Any", group))))
            for are_rows, group in groupby(items, key=_is_row)
        ]
        for are_rows, rows in made:
            if are_rows:
                self._stream.write_encoded(RowBlock.of(cast("list[bytes]", rows)))
            else:
                self._stream.write(cast("list[Sequence[Any]]", rows))

    def _row(self, message: "MessageExt") -> "Sequence[Any]":
        if self._values:
            return cast("Sequence[Any]", json_message_row(message))
        return message_row(message, self._form)

    def flush(self) -> None:
        """Print the rows of a table so far, and flush stdout."""
        self._stream.flush()

    def finish(self) -> None:
        """End the array or the table."""
        self._stream.finish()
