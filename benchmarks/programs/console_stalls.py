"""The console as it is started by a user, with a clock in its event loop.

Arguments: the file for the results, then those of rmqctl. Each few milliseconds a thread asks the
loop for an answer; how long it waits is what a key would wait. Each second the file is written: the
waits, and the CPU time of each look and of each walk, in the order of time. A walk says how far it
is, can be stopped, and lets the looks of the screen go on.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import rmqctl.console.program.app as app
import rmqctl.console.reading as reading
from rmqctl.__main__ import main

_PAUSE_S = 0.004
_OUT = Path(sys.argv[1])

waits: list[tuple[float, float]] = []
looks: list[tuple[str, float, float]] = []
walks: list[tuple[str, float, float]] = []
_mounted, _look = app.ConsoleApp.on_mount, reading.Reader._look


def _asked(loop: Any) -> None:
    written = time.perf_counter()
    while True:
        asked, answered = time.perf_counter(), threading.Event()
        loop.call_soon_threadsafe(answered.set)
        answered.wait()
        now = time.perf_counter()
        waits.append((asked, now - asked))
        if now - written > 1:
            written = now
            part = _OUT.with_suffix(".part")
            part.write_text(json.dumps({"waits": waits, "looks": looks, "walks": walks}))
            part.replace(_OUT)
        time.sleep(_PAUSE_S)


def _on_mount(self: app.ConsoleApp) -> None:
    _mounted(self)
    threading.Thread(target=_asked, args=(self._loop,), daemon=True).start()


def _timed(self: reading.Reader, asked: reading.Asked) -> None:
    begun = time.thread_time()
    _look(self, asked)
    found = walks if asked.look.walk else looks
    found.append((asked.look.name, time.perf_counter(), time.thread_time() - begun))


app.ConsoleApp.on_mount = _on_mount  # type: ignore[method-assign]
reading.Reader._look = _timed  # type: ignore[method-assign]
sys.argv = ["rmqctl", *sys.argv[2:]]
main()
