"""The store of a reader: opened when it is needed, and anew where another one is in its place."""

import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rmqctl import exit_codes
from rmqctl.errors import CliError

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

_MOST_WARNED: Final = 100
_of_thread = threading.local()

Identity = tuple[tuple[int, int] | None, ...]
"""What distinguishes the folders of a store from those of any other; None: one is not there."""


class OpenedStore:
    """A store, opened for reading by one thread."""

    def __init__(self, path: Path, closed: Callable[[], object]) -> None:
        """``closed`` is called when it is closed."""
        self.path = path
        self._closed = closed
        self.warned: dict[str, None] = {}
        """Warnings of the libraries since it was opened."""
        self._damaged: dict[Path, tuple[int, int] | None] = {}
        """The files that these are about, as they were then."""
        self._broker: EmbeddedBroker | None = None
        self.identity: Identity = ()
        """That of the store that was opened last."""

    def take_warnings(self) -> None:
        """Keep the warnings of this thread."""
        _of_thread.store = self

    def broker(self) -> "EmbeddedBroker":
        """The store; raises what opening raises.

        A store of which the folder was removed or replaced is closed: files that are still mapped,
        and names that are not found any more, would make it look like a store without messages. So
        is one of which a damaged file was replaced, as its warning may hold no longer.
        """
        mended = any(_identity(file) != before for file, before in self._damaged.items())
        if self._broker is not None and (mended or self._is_another()):
            self.close()
        if self._broker is None:
            from broker.embedded.broker import EmbeddedBroker

            found = identity_of(self.path)
            self._broker = EmbeddedBroker.open(self.path, read_only=True)
            self.identity = found
        return self._broker

    def check(self) -> None:
        """Raise what opening raises, or CliError, if what was read is not of one store."""
        if self._broker is not None and self._is_another():
            self.broker()
            sentence = f"{self.path} was replaced by another store while it was read"
            raise CliError(sentence, exit_codes.CHANGED)

    def _is_another(self) -> bool:
        """Whether another store, or none, is in the place of the one that was opened."""
        return identity_of(self.path) != self.identity

    def warn(self, message: Warning | str) -> None:
        """Keep a warning."""
        if len(self.warned) < _MOST_WARNED:
            self.warned[str(message)] = None
            path = getattr(message, "path", None)
            if path is not None:
                self._damaged.setdefault(path, _identity(path))

    def close(self) -> None:
        """Close it; it is opened again when it is needed."""
        broker, self._broker = self._broker, None
        self.warned.clear()
        self._damaged.clear()
        if broker is not None:
            self._closed()
            broker.close()


def identity_of(path: Path) -> Identity:
    """The identity of the store at a path."""
    from storage.format.names import COMMITLOG

    return tuple(_identity(folder) for folder in (path, path / COMMITLOG))


def refuse_another(path: Path, planned: Identity) -> None:
    """Raise CliError (6) if another store lies at a path than when a plan was made."""
    now = identity_of(path)
    if None not in now and now != planned:
        sentence = f"{path} was replaced by another store since the plan was made"
        raise CliError(sentence, exit_codes.CHANGED)


def _identity(path: Path) -> tuple[int, int] | None:
    """What distinguishes a folder or a file from any other; None if it is not there or not
    reachable."""
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


def keep_warnings() -> None:
    """From now on, keep warnings of the libraries with the store of their thread."""
    from storage.errors import DamagedFileWarning, IncompleteStoreWarning

    for kind in (DamagedFileWarning, IncompleteStoreWarning):
        warnings.simplefilter("always", kind)  # each store that is opened has them again
    before = warnings.showwarning

    def show(message: Warning | str, *more: Any, **named: Any) -> None:
        store: OpenedStore | None = getattr(_of_thread, "store", None)
        if store is None:
            before(message, *more, **named)
        else:
            store.warn(message)

    warnings.showwarning = show
