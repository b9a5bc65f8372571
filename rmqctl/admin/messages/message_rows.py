"""The rows of messages."""

from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from rmqctl.admin.changes import Warn, no_warning
from rmqctl.output.message_rows import MessageRow, readable_rows

if TYPE_CHECKING:
    from storage.format.message import MessageExt


def rows_of(messages: "Iterable[MessageExt]", left_out: Warn = no_warning) -> Generator[MessageRow]:
    """A row for each message, without those whose bodies cannot be unpacked."""
    yield from readable_rows(left_out, messages)
