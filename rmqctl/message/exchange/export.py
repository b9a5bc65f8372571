"""One export: the messages of a search, masked and written in order."""

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

from rmqctl.admin.messages.search.run import Search
from rmqctl.cli.scan_display import ScanDisplay
from storage.format.errors import BodyError

from .masking import Rule, masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqctl.admin.messages.search.query import Query
    from rmqctl.cli.context import Cli
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
        with ScanDisplay(self._cli, "export") as shown:
            search = Search(self._view, self._query, jobs=self._jobs, on_progress=shown)
            self.damaged = search.damaged
            with closing(search.messages()) as messages:
                for message in islice(messages, self.limit):
                    try:
                        writer.write(masked(message, self._rules))
                    except BodyError:
                        self.damaged.add(message.commitlog_offset)
                    else:
                        self.count += 1
        writer.finish()
