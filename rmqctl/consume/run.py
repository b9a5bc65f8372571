"""One run of ``consume`` without a group: fetch, put in order, print, wait for more."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rmqctl.admin.queues.cursor import COLUMN
from rmqctl.admin.queues.in_order import Part, QueuesInOrder
from rmqctl.cli.signals import Terminated, TimeLimit
from rmqctl.output.row_block import RowBlock, RowText
from storage.format.errors import BodyError

from .portions import portions
from .reader import check_reader

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.admin.message_filter import Predicate
    from rmqctl.cli.progress import Progress

    from .printing import Printer

_LOOK_S: Final = 1.0
"""How often new queues are looked for, also while messages come."""


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
        self._queues = QueuesInOrder(broker, parts)
        self._only = parts[0].topic if len(parts) == 1 else None
        self._printer = printer
        self._predicate = predicate
        self._left = count
        self._follow = follow
        self._all_queues = all_queues
        self._tell = tell
        self.packed = 0
        """Messages that were left out as their bodies cannot be unpacked."""
        self.count = 0
        """Messages that were printed."""

    @property
    def unreadable(self) -> int:
        """Messages that were left out as their records contradict their units."""
        return self._queues.unreadable

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
        looked = time.monotonic()
        at = self._queues.passed
        while self._left != 0 and not self._printer.full:
            known = broker.wait_for_messages(None, 0) if self._follow else 0
            passed = self._step()
            share = 0 if self._follow else self._queues.passed - at  # else there is no end
            at += share
            if passed or share:
                progress.advance(passed, share)
            if passed:
                if self._follow and time.monotonic() - looked > _LOOK_S:
                    looked = time.monotonic()
                    self._add_new_queues()
                continue
            if not self._follow:
                break
            progress.clear()
            check_reader()
            broker.wait_for_messages(known, int(_LOOK_S * 1000), self._only)
            self._add_new_queues()

    def _add_new_queues(self) -> None:
        if self._all_queues:
            self._queues.add_new_queues()

    def _step(self) -> int:
        """Print the messages that are ready; returns how many messages were passed."""
        room = COLUMN if self._left is None or self._predicate else min(COLUMN, self._left)
        ready = self._queues.ready(room)
        passed = self._print(ready.items)
        ready.take(passed)
        if passed:
            self._printer.flush()
        return passed

    def _print(self, items: Sequence[Any]) -> int:
        """Print the items that match; returns how many were passed, matching or not."""
        passed = 0
        for portion in portions(items):
            passed += self._print_portion(portion)
            if self._left == 0 or self._printer.full:
                break
        return passed

    def _print_portion(self, items: Sequence[Any]) -> int:
        """Print some items that match; returns how many were passed, matching or not.

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
        if type(items) is RowBlock:
            wanted: Any = items if left is None else items.upto(left)
            if count := wanted.kept:
                self._printer.write(wanted)
                self.count += count
                if left is not None:
                    self._left = left - count
            return len(wanted)
        if predicate is None and None not in items:
            wanted = list(items) if left is None else list(items[:left])
            passed = len(wanted)
        else:
            wanted, passed = [], 0
            for item in items:
                passed += 1
                if item is None:  # left out by a filter on columns
                    continue
                if predicate is None or type(item) is RowText or predicate(item):
                    wanted.append(item)
                    if len(wanted) == left:
                        break
        if wanted:
            self._printer.write(wanted)
            self.count += len(wanted)
            if left is not None:
                self._left = left - len(wanted)
        return passed
