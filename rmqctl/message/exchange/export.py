"""One export: the messages of a search, masked and written in order."""

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

from rmqctl.admin.messages.search.run import SearchRun, usable_cpus
from storage.format.errors import BodyError

from .masking import Rule, masked

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from rmqctl.cli.context import Cli
    from rmqctl.message.search.query import Query
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
        self._jobs = jobs or usable_cpus()
        self.limit = cli.view.limit
        """Most messages to write; None for all."""
        self.count = 0
        """Number of written messages."""
        self.damaged: set[int] = set()
        """Log offsets of records that may belong to it but cannot be read."""

    def run(self, writer: "Writer") -> None:
        """Write all messages, or as many as the limit allows."""
        with closing(self._messages()) as messages:
            for message in islice(messages, self.limit):
                try:
                    writer.write(masked(message, self._rules))
                except BodyError:
                    self.damaged.add(message.commitlog_offset)
                else:
                    self.count += 1
        writer.finish()

    def _messages(self) -> "Generator[MessageExt]":
        run = SearchRun(self._view, self._query, self._jobs)
        with (
            self._cli.progress("export", "bytes", run.total_bytes) as progress,
            run.hits(progress) as hits,
        ):
            for found in hits:
                self.damaged.update(found.damaged)
                for offset in found.offsets:
                    message = self._view.look_message_by_offset(offset)
                    if message is None:
                        self.damaged.add(offset)
                    else:
                        yield message
