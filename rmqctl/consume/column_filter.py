"""The filters of a call on the rows of a table: without a message for each row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from rmqctl.admin.message_filter import MessageTest

if TYPE_CHECKING:
    from storage.format.message import MessageExt
    from storage.read.message_table import MessageTable

_BODY: Final = "stored_body"


class ColumnFilter:
    """Some tests, each on the rows that the ones before have left."""

    def __init__(self, tests: Sequence[MessageTest]) -> None:
        self._tests = tests
        self.fields: Final = frozenset[str]().union(*(test.fields or () for test in tests))
        """The fields that a table needs."""

    def test(self, table: "MessageTable", rows: bytearray) -> None:
        """Rows that are not 0 become 1 where all tests hold, else 0. No body is compressed."""
        for test in self._tests:
            if test.bodies is not None:
                test.bodies(table.buffer(f"{_BODY}_ends"), table.buffer(_BODY), rows)
                continue
            row = RowOfTable(table)
            message = cast("MessageExt", row)
            at = rows.find(1)
            while at >= 0:
                row.at = at
                rows[at] = bool(test.holds(message))
                at = rows.find(1, at + 1)


class RowOfTable:
    """What a test reads of a message, for one row of a table after the other."""

    def __init__(self, table: "MessageTable") -> None:
        self._table = table
        self._ends: dict[str, Any] = {}
        self.at = 0
        """The row."""

    def _numbers(self, name: str) -> Any:
        found = self._ends.get(name)
        if found is None:
            found = self._ends[name] = memoryview(self._table.buffer(name)).cast("i")
        return found

    def _bytes(self, name: str) -> bytes:
        ends = self._numbers(f"{name}_ends")
        return bytes(self._table.buffer(name)[ends[self.at] : ends[self.at + 1]])

    def _texts(self, ends_name: str, name: str) -> list[str]:
        spans, ends = self._numbers(ends_name), self._numbers(f"{name}_ends")
        text = self._table.buffer(name)
        return [
            text[ends[item] : ends[item + 1]].decode()
            for item in range(spans[self.at], spans[self.at + 1])
        ]

    @property
    def body(self) -> bytes:
        """As Message.body."""
        return self._bytes(_BODY)

    @property
    def keys(self) -> tuple[str, ...]:
        """As Message.keys."""
        return tuple(self._texts("keys_ends", "keys_text"))

    @property
    def msg_id(self) -> str:
        """As MessageExt.msg_id."""
        return self._bytes("msg_id").decode()

    @property
    def offset_msg_id(self) -> str:
        """As MessageExt.offset_msg_id."""
        return self._bytes("offset_msg_id").decode()

    @property
    def born_host(self) -> str:
        """As MessageExt.born_host."""
        return self._bytes("born_host").decode()

    @property
    def reconsume_times(self) -> int:
        """As MessageExt.reconsume_times."""
        times: int = self._numbers("reconsume_times")[self.at]
        return times
