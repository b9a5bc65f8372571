"""Looks of the console one after the other, with frames, as the program makes them; prints JSON.

Arguments: the store, groups, topics, queues; looks; the share of positions that move before a look,
and before each how many looks. Time goes on by two seconds a look.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from time import thread_time
from typing import Any

from benchmarks.console_store import Size, mover
from benchmarks.process_memory import ANONYMOUS, memory_bytes
from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.cycle_search import FullSearch, only_new_objects
from rmqctl.console.looks.look import Place, Source
from rmqctl.console.painting import Painter
from rmqctl.console.panes import Pane
from rmqctl.console.program.app import ConsoleApp  # noqa: F401 - it is part of the memory
from rmqctl.console.reading import Asked, Batch
from rmqctl.console.screens.table import spec_of
from rmqctl.console.themes import Theme
from rmqctl.output.view import Format, View
from storage.clock import now_ms

_SIZE = 80, 20
_MEMORY_EVERY = 100
_LATER_MS = 600_000
"""By then no message is young: what was just stored has another state a minute later."""


class Parts:
    """Whether more of a look is left."""

    are_left = False

    def go_on(self) -> None:
        """Take note that there is."""
        self.are_left = True


def main() -> None:
    """Look and draw."""
    root = Path(sys.argv[1])
    size = Size(*map(int, sys.argv[2:5]))
    looks, share, every = int(sys.argv[5]), float(sys.argv[6]), int(sys.argv[7])
    view = View(Format.TABLE, terminal=True, now_ms=now_ms())
    place = Place("groups")
    pane = Pane(spec_of("groups").panes[0], place, view)
    painter = Painter(Theme("dark", color=True))
    memory: dict[str, Any] = {}
    looked, drawn, mib = [], [], []
    rows: list[Any] = []
    full_search = FullSearch()
    parts = Parts()
    with (
        EmbeddedBroker.open(root, read_only=True) as broker,
        mover(root, size) as others,
        only_new_objects(),
    ):
        begun = now_ms() + _LATER_MS
        for number in range(looks):
            if number and not number % every:
                others.move(share)
            source = Source(broker, begun + 2_000 * number, lambda sentence: None, memory)
            source = source._replace(go_on=parts.go_on)
            start = thread_time()
            rows = list(pane.look.read(source, place))
            while parts.are_left:  # the first look is made in parts
                parts.are_left = False
                rows = list(pane.look.read(source, place))
            full_search.after_look()
            looked.append(thread_time() - start)
            asked = Asked(pane.look, place, everything=False, number=number)
            start = thread_time()
            pane.take(Batch(asked, rows, first=True, complete=True, as_of=source.now_ms, took_ms=1))
            painter.frame(pane.lines(*_SIZE, active=True, titled=True), _SIZE[0])
            drawn.append(thread_time() - start)
            if not number % _MEMORY_EVERY:
                gc.collect()
                mib.append(memory_bytes(ANONYMOUS) / (1 << 20))
    mib.append(memory_bytes(ANONYMOUS) / (1 << 20))
    print(json.dumps({"look": looked, "draw": drawn, "mib": mib, "rows": len(rows)}))


if __name__ == "__main__":
    main()
