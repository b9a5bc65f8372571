"""The files below an address: a list of them, and ranges of their bytes, through pyarrow.

Errors say in one sentence which object could not be read, and why.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from analytics.errors import ObjectStoreError

from .address import for_pyarrow, shown, without_secrets
from .parallel import PATIENCE_S, NoAnswerError, in_parallel

if TYPE_CHECKING:
    from pyarrow import fs

T = TypeVar("T")
_MOST_AT_ONCE: Final = 8 << 20
"""Bytes of one request: a longer range is several, at the same time."""
_LONGEST_CAUSE: Final = 300


class ObjectInfo(NamedTuple):
    """What a list says of an object; one that was replaced has another one."""

    size: int
    modified_ns: int
    """Some stores have whole seconds, and some of them more in a list."""
    is_folder: bool = False

    def is_still(self, now: ObjectInfo | None) -> bool:
        """Whether an object is the same as before."""
        return now is not None and (self.size, self.modified_ns // 10**9) == (
            now.size,
            now.modified_ns // 10**9,
        )


class Objects:
    """The objects of one store, by their names below its address. Thread-safe."""

    def __init__(self, address: str, patience_s: float = PATIENCE_S) -> None:
        """Raises ObjectStoreError. Reads nothing of the store, but some libraries ask where it
        lies."""
        self.shown: Final = shown(address)
        self._address = address
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._opened: dict[str, Any] = {}
        try:
            from pyarrow import fs
        except ImportError:
            raise ObjectStoreError(
                f"{self.shown}: only the Python package pyarrow reads it; install rmqctl[spark]"
            ) from None
        self._fs: fs.FileSystem
        self._root: str
        uri = for_pyarrow(address)
        self._fs, self._root = self._ask(lambda: fs.FileSystem.from_uri(uri))

    def listed(self) -> dict[str, ObjectInfo]:
        """All objects. Raises ObjectStoreError, also where there is none."""
        from pyarrow import fs

        selector = fs.FileSelector(self._root, recursive=True)
        found = self._ask(lambda: self._fs.get_file_info(selector))
        start = len(self._root.rstrip("/")) + 1
        infos = {info.path[start:]: _info(info) for info in found}
        if not infos:
            raise ObjectStoreError(f"{self.shown}: there is nothing at this address")
        return infos

    def now(self, names: Iterable[str]) -> dict[str, ObjectInfo | None]:
        """Some objects as they are now; None for one that is gone."""
        names = list(names)
        found: dict[str, ObjectInfo | None] = {}

        def look(name: str) -> None:
            info = self._fs.get_file_info(self._path(name))
            found[name] = None if info.type.name == "NotFound" else _info(info)

        self.each([partial(look, name) for name in names])
        return found

    def whole(self, infos: Mapping[str, ObjectInfo]) -> dict[str, bytes]:
        """The content of some small objects."""
        found: dict[str, bytes] = {}

        def read(name: str, size: int) -> None:
            found[name] = bytes(self.read(name, 0, size)) if size else b""

        self.each([partial(read, name, info.size) for name, info in infos.items()])
        return found

    def read(self, name: str, start: int, end: int) -> memoryview:
        """A range of an object. Raises ObjectStoreError, and what pyarrow raises: ``each`` makes a
        sentence of it."""
        file = self._open(name)
        data = memoryview(file.read_at(end - start, start))
        if len(data) != end - start:
            raise ObjectStoreError(
                f"{self.shown}/{name}: {end - start} bytes from {start} on were asked for, "
                f"{len(data)} came"
            )
        return data

    def _open(self, name: str) -> Any:
        file = self._opened.get(name)
        if file is None:
            try:
                file = self._fs.open_input_file(self._path(name))
            except FileNotFoundError:
                raise ObjectStoreError(f"{self.shown}/{name}: it is not there any more") from None
            with self._lock:
                file = self._opened.setdefault(name, file)
        return file

    def forget(self, name: str) -> None:
        """Open an object anew when it is read again."""
        with self._lock:
            self._opened.pop(name, None)

    def each(self, jobs: list[Callable[[], None]]) -> None:
        """Do requests, some at a time. Raises ObjectStoreError."""
        try:
            in_parallel(jobs, self._patience_s)
        except (ObjectStoreError, MemoryError):
            raise
        except NoAnswerError:
            raise ObjectStoreError(
                f"{self.shown}: no answer for {self._patience_s:g} seconds"
            ) from None
        except Exception as error:  # noqa: BLE001 - of many libraries
            raise ObjectStoreError(f"{self.shown}: {self._cause(error)}") from None

    def _ask(self, question: Callable[[], T]) -> T:
        found: list[T] = []
        self.each([lambda: found.append(question())])
        return found[0]

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _cause(self, error: Exception) -> str:
        """The sentence of another library, in one line, without credentials."""
        if isinstance(error, FileNotFoundError):
            return "there is nothing at this address"
        text = without_secrets(str(error) or type(error).__name__, self._address)
        text = re.sub(r"\s+", " ", text).removeprefix("[Errno 5] ").rstrip(". ")
        return text if len(text) <= _LONGEST_CAUSE else f"{text[:_LONGEST_CAUSE]} ..."


def pieces(start: int, end: int) -> Iterable[tuple[int, int]]:
    """A range as those of single requests."""
    return ((at, min(at + _MOST_AT_ONCE, end)) for at in range(start, end, _MOST_AT_ONCE))


def _info(info: Any) -> ObjectInfo:
    return ObjectInfo(info.size or 0, info.mtime_ns or 0, info.type.name == "Directory")
