"""The thread that reads one store for the console: one look at a time, the last request first."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from .faults import sentence_of
from .looks.cycle_search import FullSearch
from .looks.look import LAG_HISTORY, Look, Place, Progress, Source
from .opened import Identity, OpenedStore

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.settings import Settings

_BATCH: Final = 500
"""Rows that are handed over together."""
_BATCH_S: Final = 0.1
"""Rows that came so far are handed over after this time."""


class Asked(NamedTuple):
    """A look that is wanted."""

    look: Look
    place: Place
    everything: bool
    """Whether rows of the system are wanted, too."""
    number: int
    """Tells the answers of one request from those of an earlier one."""


class Batch(NamedTuple):
    """Rows of a look, or why there are none."""

    asked: Asked
    rows: list[Any]
    first: bool
    """Whether these rows replace those of the look before."""
    complete: bool
    """Whether no more rows come."""
    as_of: int
    """When the look began, in epoch ms."""
    took_ms: int
    notices: tuple[str, ...] = ()
    hidden: int = 0
    """Rows of the system that are left out."""
    error: str | None = None
    """Why the look failed; the rows of the look before are still shown."""
    progress: Progress | None = None
    stopped: bool = False
    """Whether the look was ended before its last row."""
    lost: bool = False
    """Whether it failed as the store could not be opened."""
    goes_on: bool = False
    """Whether the rows are a part, and the next look has more."""
    store: Identity = ()
    """That of the store that was read."""


class _Stopped(Exception):
    """The look is no longer wanted."""


class Reader:
    """Opens a store for reading, and reads what is asked for, in a thread of its own.

    ``answer`` is called in that thread with each Batch.
    """

    def __init__(
        self,
        path: Path,
        answer: Callable[[Batch], None],
        zone: tzinfo | None = None,
        settings: "Settings | None" = None,
    ) -> None:
        self.path = path
        self._settings = settings
        self._answer = answer
        self._zone = zone
        self._changed = threading.Condition()
        self._asked: dict[Look, Asked] = {}
        self._calls: deque[tuple[Callable[[Source], Any], Callable[[Any], object]]] = deque()
        self._stopped: set[int] = set()
        self._ends = False
        self._held = False
        self._running: Asked | None = None
        self._store = OpenedStore(path, self._forget_rows)
        self._memory: dict[str, Any] = {}
        self._memory_of: Identity = ()
        self._thread = threading.Thread(target=self._run, name="console-reader", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def ask(self, asked: Asked) -> None:
        """Want a look; it replaces one of the same pane that has not begun."""
        with self._changed:
            replaced = self._asked.get(asked.look)
            if replaced is not None:
                self._stopped.discard(replaced.number)
            self._asked[asked.look] = asked
            self._changed.notify()

    def call(self, function: Callable[[Source], Any], answer: Callable[[Any], object]) -> None:
        """Call a function in the thread, before looks that wait; ``answer`` gets its value there.

        The function must not raise, but where the store cannot be opened; that is its value then.
        """
        with self._changed:
            self._calls.append((function, answer))
            self._changed.notify()

    def reopen(self) -> None:
        """Open the store anew with the next look, as its files have been replaced."""
        self.call(lambda source: self._forget_store(OSError()), lambda value: None)

    def warn_anew(self) -> None:
        """Open the store anew with the next look if a library has warned of it: it warns once, and
        of what may be mended by now."""

        def close(source: Source) -> None:
            if self._store.warned:
                self._store.close()

        self.call(close, lambda value: None)

    def forget(self) -> None:
        """Drop what has not begun, and end what runs with its next row."""
        with self._changed:
            self._asked.clear()
            self._stopped = set() if self._running is None else {self._running.number}
            self._held = False
            self._changed.notify()

    def hold(self, *, held: bool) -> None:
        """Let the look that runs wait, or go on."""
        with self._changed:
            self._held = held
            self._changed.notify()

    def stop_look(self, number: int) -> None:
        """End the look with this number at its next row, and one that runs while it waits to
        read the same again; nothing if it has ended."""
        with self._changed:
            running = [] if self._running is None else [self._running]
            known = [*running, *self._asked.values()]
            wanted = next((asked for asked in known if asked.number == number), None)
            if wanted is not None:
                same = [asked.number for asked in running if asked[:2] == wanted[:2]]
                self._stopped.update((number, *same))
            self._changed.notify()

    def stops(self, number: int) -> bool:
        """Whether the look with this number is to end, and has not ended yet."""
        with self._changed:
            return number in self._stopped

    @property
    def busy(self) -> bool:
        """Whether looks wait that have not begun."""
        return bool(self._asked)

    @property
    def ending(self) -> bool:
        """Whether the thread ends, so that its batches are not wanted."""
        return self._ends

    def end(self, seconds: float) -> None:
        """End the thread, and wait for it at most so long."""
        with self._changed:
            self._ends = True
            self._held = False
            self._asked.clear()
            self._calls.clear()
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        self._store.take_warnings()
        full_search = FullSearch()
        while True:
            with self._changed:
                while not self._asked and not self._calls and not self._ends:
                    self._changed.wait()
                if self._ends:
                    break
                call = self._calls.popleft() if self._calls else None
                asked = None if call else self._asked.pop(next(iter(self._asked)))
                self._running = asked
            if call is not None:
                self._called(*call)
            if asked is not None:
                self._look(asked)
                full_search.after_look()
                with self._changed:
                    self._running = None
                    self._stopped.discard(asked.number)
        self._store.close()

    def _called(self, function: Callable[[Source], Any], answer: Callable[[Any], object]) -> None:
        from storage.clock import now_ms

        try:
            source = Source(self._opened(), now_ms(), lambda sentence: None, self._memory)
            value = function(source)
        except Exception as error:  # noqa: BLE001 - the caller shows it
            self._forget_store(error)
            value = error
        answer(value)

    def _look(self, asked: Asked) -> None:
        from rmqctl.admin.kinds import UsersRows
        from storage.clock import now_ms

        users: UsersRows | None = None
        begun, as_of = time.monotonic(), now_ms()
        notices: list[str] = []
        rows: list[Any] = []
        first = True
        progress: Progress | None = None
        last = begun
        lost = goes_on = False

        def hand_over(*, complete: bool, error: str | None = None, stopped: bool = False) -> None:
            nonlocal rows, first, last
            hidden = 0 if users is None else users.hidden
            took = round((time.monotonic() - begun) * 1000)
            root = f"{self.path}/"  # the first line of the screen has it
            sentences = dict.fromkeys((*self._store.warned, *notices))
            shown = tuple(sentence.replace(root, "") for sentence in sentences)
            batch = Batch(asked, rows, first, complete, as_of, took, shown, hidden, error)
            batch = batch._replace(progress=progress, store=self._store.identity)
            self._answer(batch._replace(stopped=stopped, lost=lost, goes_on=goes_on))
            rows, first, last = [], False, time.monotonic()

        def go_on() -> None:
            nonlocal goes_on
            goes_on = True

        def advance(now: Progress) -> None:
            nonlocal progress
            progress = now
            if self._unwanted(asked):
                raise _Stopped
            if time.monotonic() - last > _BATCH_S:
                hand_over(complete=False)

        try:
            lost = asked.look.of_store
            broker = self._opened() if lost else cast("EmbeddedBroker", None)
            lost = False
            source = Source(
                *(broker, as_of, notices.append, self._memory, advance, self._zone),
                *(self._settings, go_on),
            )
            found: Iterable[Any] = asked.look.read(source, asked.place)
            if asked.look.users_only and not asked.everything:
                found = users = UsersRows(found, source.view)
            if isinstance(found, list):  # all of it is there: it is not worth while to cut it
                rows, found = found, []
                if goes_on and self._unwanted(asked):
                    goes_on = False
                    raise _Stopped
            with _closed(found):
                for row in found:
                    if row is not None:
                        rows.append(row)
                    if self._unwanted(asked):
                        raise _Stopped
                    if len(rows) >= _BATCH or time.monotonic() - last > _BATCH_S:
                        hand_over(complete=False)
            self._store.check()
        except _Stopped:
            hand_over(complete=True, stopped=True)
            return
        except Exception as error:  # noqa: BLE001 - a look that fails leaves the old rows
            gone = None if lost else self._gone()
            lost = lost or gone is not None
            self._forget_store(gone or error)
            hand_over(complete=True, error=sentence_of(gone or error))
            return
        hand_over(complete=True)

    def _unwanted(self, asked: Asked) -> bool:
        """Whether the look must end; waits as long as it is held."""
        with self._changed:
            while self._held and not (self._ends or asked.number in self._stopped):
                self._changed.wait()
            return self._ends or asked.number in self._stopped

    def _gone(self) -> Exception | None:
        """What a store says that was removed or replaced while it was read: the cause of an error
        that its look has raised."""
        try:
            self._store.check()
        except Exception as error:  # noqa: BLE001 - the pane shows it
            return error
        return None

    def _opened(self) -> "EmbeddedBroker":
        """The store; nothing is kept of another one that lay there before."""
        broker = self._store.broker()
        if self._memory_of not in ((), self._store.identity):
            self._memory.clear()
        self._memory_of = self._store.identity
        return broker

    def _forget_store(self, error: Exception) -> None:
        """Open the store anew with the next look, where it may have been replaced."""
        if isinstance(error, OSError):
            self._store.close()
        self._forget_rows()

    def _forget_rows(self) -> None:
        for name in self._memory.keys() - {LAG_HISTORY}:
            del self._memory[name]


@contextmanager
def _closed(rows: Iterable[Any]) -> Iterator[None]:
    """Closes what makes rows at the end, so that it ends its work."""
    try:
        yield
    finally:
        close = getattr(rows, "close", None)
        if close is not None:
            close()
