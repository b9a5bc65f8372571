"""One run of ``consume`` without a group: fetch, put in order, print, wait for more."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.cli.signals import Terminated, TimeLimit
from storage.format.errors import BodyError

from .cursor import COLUMN, Cursor, Fetched, Fetcher
from .merge import Round
from .reader import check_reader
from .selection import Span

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.admin.message_filter import Predicate
    from rmqctl.cli.progress import Progress

    from .printing import Printer

_LONGEST_WAIT_MS: Final = 1000
"""Longest sleep before a check for new queues."""


class Part(NamedTuple):
    """One topic of a run: the ranges of its queues, and how they are read."""

    topic: str
    spans: Sequence[Span]
    fetch: Fetcher


class ConsumeRun:
    """Reads the queues of topics; see :meth:`run`."""

    def __init__(
        self,
        broker: "EmbeddedBroker",
        parts: Sequence[Part],
        printer: "Printer",
        *,
        predicate: "Predicate | None",
        count: int | None,
        follow: bool,
        all_queues: bool,
        tell: Callable[[str], object],
    ) -> None:
        """``tell`` is called with a sentence for each message that is left out."""
        self._broker = broker
        self._parts = parts
        self._only = parts[0].topic if len(parts) == 1 else None
        self._printer = printer
        self._predicate = predicate
        self._left = count
        self._follow = follow
        self._all_queues = all_queues
        self._cursors: list[Cursor] = []
        self._known: list[set[int]] = []
        """The queues that are read, of each part."""
        for part in parts:
            self._known.append({span.queue_id for span in part.spans})
            self._cursors += [self._cursor(part, span) for span in part.spans]
        self._tell = tell
        self.packed = 0
        """Messages that were left out as their bodies cannot be unpacked."""
        self.count = 0
        """Messages that were printed."""

    @property
    def unreadable(self) -> int:
        """Messages that were left out as their records contradict their units."""
        return sum(cursor.unreadable for cursor in self._cursors)

    def _cursor(self, part: Part, span: Span) -> Cursor:
        return Cursor(span.queue_id, span.start, span.end, partial(self._fetched, part))

    def _fetched(self, part: Part, queue_id: int, offset: int, count: int) -> Fetched:
        """The fetch, with the places that hold no message on purpose not counted as unreadable."""
        fetched = part.fetch(queue_id, offset, count)
        if not fetched.unreadable:
            return fetched
        from storage.read.replaced import places_without_message

        view, end = self._broker.view, fetched.next_offset
        settled = places_without_message(view, part.topic, queue_id, offset, end)
        return fetched._replace(unreadable=max(0, fetched.unreadable - settled))

    def run(self, progress: "Progress") -> None:
        """Read up to the end or the count, or without end."""
        try:
            self._run(progress)
        except (KeyboardInterrupt, TimeLimit, Terminated):
            self._finish()
            raise
        self._finish()

    def _finish(self) -> None:
        """Print the end, as an array that was started must be closed."""
        self._printer.finish()
        self._printer.flush()

    def _run(self, progress: "Progress") -> None:
        broker = self._broker
        while self._left != 0 and not self._printer.full:
            known = broker.wait_for_messages(None, 0) if self._follow else 0
            passed = self._step()
            if passed:
                progress.advance(passed)
                continue
            if not self._follow:
                break
            progress.clear()
            check_reader()
            broker.wait_for_messages(known, _LONGEST_WAIT_MS, self._only)
            self._look_around()

    def _step(self) -> int:
        """Print the messages that are ready; returns how many messages were passed."""
        room = COLUMN if self._left is None or self._predicate else min(COLUMN, self._left)
        for cursor in self._cursors:
            if not cursor.done:
                cursor.fill(room)
        ready = Round(self._cursors)
        passed = self._print(ready.items)
        ready.take(passed)
        if passed:
            self._printer.flush()
        return passed

    def _print(self, items: Sequence[Any]) -> int:
        """Print the items that match; returns how many were passed, matching or not.

        A message whose body cannot be unpacked is named and left out.
        """
        try:
            return self._print_all(items)
        except BodyError:
            pass  # nothing of them was printed
        for passed, item in enumerate(items):
            try:
                self._print_all((item,))
            except BodyError as error:
                self.packed += 1
                self._tell(f"left out {error}")
            if self._left == 0:
                return passed + 1
        return len(items)

    def _print_all(self, items: Sequence[Any]) -> int:
        """Print all items that match, or raise BodyError before the first is printed."""
        predicate, left = self._predicate, self._left
        if predicate is None:
            wanted = list(items) if left is None else list(items[:left])
            passed = len(wanted)
        else:
            wanted, passed = [], 0
            for item in items:
                passed += 1
                if predicate(item):
                    wanted.append(item)
                    if len(wanted) == left:
                        break
        if wanted:
            self._printer.write(wanted)
            self.count += len(wanted)
            if left is not None:
                self._left = left - len(wanted)
        return passed

    def _look_around(self) -> None:
        """Add cursors for new queues."""
        if not self._all_queues:
            return
        for part, known in zip(self._parts, self._known, strict=True):
            config = self._broker.topic(part.topic)
            for queue_id in range(0 if config is None else config.read_queue_nums):
                if queue_id not in known:
                    known.add(queue_id)
                    self._cursors.append(self._cursor(part, Span(queue_id, 0, None)))
