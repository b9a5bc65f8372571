"""Carrying out a plan, in a thread of its own: never in the thread that draws."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from rmqctl.admin.changes import Change
from rmqctl.console.faults import judged
from rmqctl.exit_codes import CHANGED, NOT_FOUND, NOT_WRITABLE, REFUSED, USAGE

from .wish import Stopped

_BEFORE: Final = frozenset({CHANGED, NOT_FOUND, NOT_WRITABLE, REFUSED, USAGE})
"""Codes of errors that a change raises before it has changed anything."""
_ROWS: Final = 200
"""Rows that are handed over together."""
_TIME_S: Final = 0.2
"""Rows that came so far are handed over after this time."""


class Done(NamedTuple):
    """What has been done so far."""

    rows: tuple[Any, ...] = ()
    """More result rows."""
    change_id: int | None = None
    complete: bool = False
    error: str | None = None
    untouched: bool = False
    """Whether the error came before anything was changed: the plan was stale, or refused."""
    stopped: bool = False
    """Whether it was ended before its last row."""


class Work:
    """One plan that is carried out. ``answer`` is called in the thread of it with each Done;
    ``hurry`` ends its waits; ``check`` raises what forbids to begin."""

    def __init__(
        self,
        change: Change,
        note: Mapping[str, Any],
        answer: Callable[[Done], object],
        hurry: Callable[[], object] = lambda: None,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self._change = change
        self._note = note
        self._answer = answer
        self._hurry = hurry
        self._check = check
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, name="console-change")
        self._thread.start()

    def stop_soon(self) -> None:
        """End before the next row. What has been done stays done."""
        self._stops.set()
        self._hurry()

    def stop(self) -> None:
        """The same; returns once it has ended."""
        self.stop_soon()
        self._thread.join()

    def _run(self) -> None:
        rows: list[Any] = []
        change_id = None
        stopped = False
        until = time.monotonic() + _TIME_S
        try:
            self._check()
            outcome = self._change.apply(self._note)
            change_id = outcome.change_id
            for row in outcome.rows:
                rows.append(row)
                if len(rows) >= _ROWS or time.monotonic() > until:
                    self._answer(Done(tuple(rows), change_id))
                    rows, until = [], time.monotonic() + _TIME_S
                if self._stops.is_set():
                    stopped = True
                    break
        except Stopped:
            stopped = True
        except Exception as error:  # noqa: BLE001 - the screen shows what happened
            code, sentence = judged(error)
            refused = code in _BEFORE and not isinstance(error, OSError)
            self._answer(Done(tuple(rows), change_id, True, sentence, refused))
            return
        self._answer(Done(tuple(rows), change_id, complete=True, stopped=stopped))
