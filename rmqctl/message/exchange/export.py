"""One export: the messages of a search, masked and written in order."""

from contextlib import closing
from itertools import groupby, islice
from typing import TYPE_CHECKING

from rmqctl.admin.messages.search.hit_tables import rows_at
from rmqctl.admin.messages.search.run import Search
from rmqctl.cli.scan_display import ScanDisplay
from rmqctl.output.row_block import RowBlock, RowText
from storage.format.errors import BodyError

from .masking import Rule, masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqctl.admin.messages.search.query import Query
    from rmqctl.cli.context import Cli
    from rmqctl.output.encoded_rows import Layout
    from storage.format.message import MessageExt
    from storage.readonly import StoreView

    from .formats import Writer


class ExportRun:
    """Reads a store once; see :meth:`run`."""

    def __init__(
        self,
        cli: "Cli",
        view: "StoreView",
        query: "Query",
        rules: "Sequence[Rule]",
        jobs: int | None,
    ) -> None:
        self._cli = cli
        self._view = view
        self._query = query
        self._rules = rules
        self._jobs = jobs
        self.limit = cli.view.limit
        """Most messages to write; None for all."""
        self.count = 0
        """Number of written messages."""
        self.damaged: set[int] = set()
        """Log offsets of records that may belong to it but cannot be read."""

    def run(self, writer: "Writer") -> None:
        """Write all messages, or as many as the limit allows."""
        layout = None if self._rules else writer.layout()
        with ScanDisplay(self._cli, "export") as shown:
            search = Search(self._view, self._query, jobs=self._jobs, on_progress=shown)
            self.damaged = search.damaged
            if layout is None:
                self._write(search, writer)
            else:
                self._write_rows(search, writer, layout)
        writer.finish()
        self.count = writer.count

    def _write(self, search: Search, writer: "Writer") -> None:
        """Message by message."""
        with closing(search.messages()) as messages:
            for message in islice(messages, self.limit):
                self._add(writer, message)
                if writer.full:
                    return

    def _add(self, writer: "Writer", message: "MessageExt") -> None:
        try:
            writer.write(masked(message, self._rules))
        except BodyError:
            self.damaged.add(message.commitlog_offset)

    def _write_rows(self, search: Search, writer: "Writer", layout: "Layout") -> None:
        """By columns; messages that have no row there are written as objects, in their place."""
        left = self.limit
        with closing(search.parts()) as parts:
            for part in parts:
                places = part.hits
                while places and left != 0:
                    some = places if left is None else places[:left]
                    lost = self._write_some(some, writer, layout)
                    places = places[len(some) :]
                    left = None if left is None else left - len(some) + lost
                if left == 0:
                    return

    def _write_some(self, places: "Sequence[int]", writer: "Writer", layout: "Layout") -> int:
        """How many of the messages at log offsets cannot be read."""
        lost = 0
        for rows in rows_at(self._view, layout, places):
            if type(rows) is RowBlock:
                writer.write_rows(rows)
                continue
            for is_row, group in groupby(rows, key=_is_row):
                if is_row:
                    writer.write_rows(RowBlock.of(list(group)))
                    continue
                for item in group:
                    if isinstance(item, int):
                        self.damaged.add(item)
                        lost += 1
                    else:
                        self._add(writer, item)
        return lost


def _is_row(item: object) -> bool:
    return type(item) is RowText
