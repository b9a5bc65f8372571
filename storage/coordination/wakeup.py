"""Waking: an appender wakes waiting processes in microseconds, without polling.

A waiter owns one flag byte of the shared state, a word with the topics that it waits for (a bit
each, so that wakes for others are rare), and a waker. The order of steps ensures that no wake is
lost:

        waiter:   flag set, barrier -> check for data -> sleep
    appender: LOG_END -> write lock released (barrier) -> for each flag set: flag = 0, then wake

A waker is one of two kinds, and the flag says which:

* a word of the shared state that counts wakes, on which the system can sleep (a futex). Waking it
  and sleeping on it is compiled (storage/native/writing/wakeup.c): one system call on either side.
* a datagram socket ``rmqctl/bells/<slot>``, where nothing is compiled.

A slot is owned through a lock on its byte that the kernel releases; slots of the dead are reused.
An appender killed between clearing and waking loses one wake, so sleeps are bounded by a second.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

from storage import native
from storage.files.creating import adopt, make_folders
from storage.files.fs import WORD
from storage.format.names import OURS
from storage.platform.file_locks import HAS_LOCKS_OF_DESCRIPTORS
from storage.platform.futex import wake_word
from storage.platform.sockets import full_is_busy, new_socket, socket_folder

from .locks import ForkAware, LockFile, at_fork
from .shared_state import MAX_WAITERS, WAITER_FLAGS, WAITER_TOPICS, WAITER_WAKERS, SharedState

if TYPE_CHECKING:
    import socket
    from mmap import mmap

    from storage.files.fs import FileSystem

WAKERS: Final = "bells"
_SLOTS: Final = "slots"
TOPIC_BITS: Final = 63
ANY_TOPIC: Final = (1 << TOPIC_BITS) - 1
LONGEST_SLEEP_MS: Final = 1000
BY_SOCKET: Final = 1
BY_WORD: Final = 2
_CLEAR: Final = b"\x00"
_NO_WAITER: Final = bytes(MAX_WAITERS)
_FLAGS_END: Final = WAITER_FLAGS + MAX_WAITERS


def topics_word(topics: Iterable[str] | None) -> int:
    """The word that encodes topics in the shared state; None = any topic."""
    if topics is None:
        return ANY_TOPIC
    word = 0
    for topic in topics:
        word |= _word_of(topic)
    return word


@lru_cache(4096)
def _word_of(topic: str) -> int:
    return 1 << crc32(topic.encode()) % TOPIC_BITS


def _has_no_futex_wakers() -> bool:
    return False


def _leave_to_python(_mapped: mmap, _wanted: int, /) -> bool:
    return True


has_futex_wakers: Final = native.form("has_futex_wakers", _has_no_futex_wakers)
"""Whether FutexWaker works here."""
arm: Final = native.form("arm", native.nothing)
woken: Final = native.form("woken", native.nothing)
wake: Final = native.form("wake", native.nothing)
notify: Final = native.form("notify", _leave_to_python)
"""Wake the waiters whose wakers are words; whether others remain."""


def slots_path(shared_path: Path) -> Path:
    """The file whose bytes are locked by the owners of slots: the shared state itself, or a file of
    its own where unmapping it would release the locks of this process."""
    if HAS_LOCKS_OF_DESCRIPTORS:
        return shared_path
    path = shared_path.with_name(WAKERS) / _SLOTS
    make_folders(path.parent)
    return path


class Waker(ABC):
    """One waiter's slot and its means to be woken. Not for several threads at once."""

    def __init__(self, shared: SharedState, slot: int, lock: LockFile) -> None:
        self._shared = shared
        self._slot = slot
        self._lock = lock

    @classmethod
    def take(cls, fs: FileSystem, shared: SharedState, root: Path) -> Waker | None:
        """Take a free slot, or None when 256 waiters are there already (then poll).

        Raises OSError if the waker cannot be made, and the slot is free again.
        """
        lock = LockFile(slots_path(shared.path))
        waker: Waker | None = None
        try:
            for slot in range(MAX_WAITERS):
                if lock.try_lock(WAITER_FLAGS + slot):
                    if has_futex_wakers():
                        waker = FutexWaker(shared, slot, lock)
                    else:
                        directory = root / OURS / WAKERS
                        fs.make_dirs(directory)
                        waker = SocketWaker(shared, slot, lock, directory)
                    break
        finally:
            if waker is None:
                lock.close()
        return waker

    @abstractmethod
    def arm(self, topics: Collection[str] | None) -> None:
        """Ask to be woken for messages of ``topics``, and forget earlier wakes. The caller must
        check for data after this call: data that is there already causes no wake."""

    @abstractmethod
    def sleep(self, timeout_ms: int) -> bool:
        """Sleep until woken or until ``timeout_ms`` is over, LONGEST_SLEEP_MS at most; whether it
        was woken. May return early, and report a wake then."""

    @abstractmethod
    def wake(self) -> None:
        """End the sleep of another thread, or its next one."""

    def disarm(self) -> None:
        """Stop being woken."""
        at = WAITER_FLAGS + self._slot
        self._shared.map[at : at + 1] = _CLEAR

    def close(self) -> None:
        """Give the slot back. Closing twice is fine, also after an interrupted first time."""
        if self._lock.fd >= 0:  # else the slot is another's by now
            self.disarm()
            self._lock.close()


class FutexWaker(Waker):
    """A waker that is a word of the shared state."""

    _seen = 0

    def arm(self, topics: Collection[str] | None) -> None:
        """See Waker.arm."""
        self._seen = arm(self._shared.map, self._slot, topics_word(topics))

    def sleep(self, timeout_ms: int) -> bool:
        """See Waker.sleep."""
        limit = max(0, min(timeout_ms, LONGEST_SLEEP_MS))
        return bool(woken(self._shared.map, self._slot, self._seen, limit))

    def wake(self) -> None:
        """See Waker.wake."""
        wake(self._shared.map, self._slot)


class SocketWaker(Waker, ForkAware):
    """A waker that is a datagram socket.

    A notifier stays connected to the sockets that it has woken: finding one by its path takes as
    long as the rest of a wake. A socket whose owner has closed it, or died, refuses; its path is
    looked up again.
    """

    def __init__(self, shared: SharedState, slot: int, lock: LockFile, directory: Path) -> None:
        super().__init__(shared, slot, lock)
        self._path = directory / str(slot)
        folder = socket_folder(directory)
        made: socket.socket | None = None
        try:
            made = new_socket()
            self._path.unlink(missing_ok=True)
            folder.bind(made, str(slot))
            adopt(self._path)
            self._poll = _poll_of(made)
            self._socket, self._folder = made, folder
            at_fork(self)
        except BaseException:
            if made is not None:
                made.close()
            folder.close()
            raise

    def arm(self, topics: Collection[str] | None) -> None:
        """See Waker.arm: drain first."""
        with suppress(BlockingIOError):
            while self._socket.recv(16):
                pass
        words = self._shared.words
        words[WAITER_TOPICS // 8 + self._slot] = topics_word(topics)
        at = WAITER_FLAGS + self._slot
        self._shared.map[at : at + 1] = bytes((BY_SOCKET,))
        self._lock.holder(WAITER_FLAGS + self._slot)  # a system call: full barrier

    def sleep(self, timeout_ms: int) -> bool:
        """See Waker.sleep."""
        return bool(self._poll(max(0, min(timeout_ms, LONGEST_SLEEP_MS))))

    def wake(self) -> None:
        """See Waker.wake."""
        with suppress(OSError):  # full: it has been woken; gone: it looks within a second
            self._folder.send(self._socket, b"!", str(self._slot))

    def after_fork(self) -> None:
        """Close the socket in a forked child: the slot is the parent's."""
        self._socket.close()

    def close(self) -> None:
        """See Waker.close."""
        try:
            self._socket.close()
            if self._lock.fd >= 0:  # else the slot is another's by now, or the parent's
                self.disarm()
                self._path.unlink(missing_ok=True)
        finally:
            self._folder.close()
            self._lock.close()


class Notifier:
    """How an appender wakes waiters."""

    def __init__(self, shared: SharedState, root: Path) -> None:
        self._shared = shared
        self._directory = root / OURS / WAKERS
        self._lock = threading.Lock()  # guards the sockets: none is closed in another's send
        self._sockets: dict[int, socket.socket] = {}  # by slot, each connected to its waker

    def has_waiters(self) -> bool:
        """Whether any process waits; to be called after the write lock is released. Costs 0.2
        us."""
        return self._shared.map[WAITER_FLAGS:_FLAGS_END] != _NO_WAITER

    def notify(self, topics: set[str] | None) -> None:
        """Wake each process that waits for one of ``topics`` (None = all), after the write lock is
        released."""
        self._notify(topics_word(topics))

    def wake_for(self, topic: str) -> None:
        """Wake each process that waits for ``topic``, after the write lock is released."""
        self._notify(_word_of(topic))

    def _notify(self, wanted: int) -> None:
        mapped = self._shared.map
        if not notify(mapped, wanted):
            return
        for slot, how in enumerate(mapped[WAITER_FLAGS:_FLAGS_END]):
            if how and self._shared.words[WAITER_TOPICS // 8 + slot] & wanted:
                at = WAITER_FLAGS + slot
                mapped[at : at + 1] = _CLEAR
                if how == BY_SOCKET:
                    self._send(slot)
                else:
                    wake_word(mapped, WAITER_WAKERS + WORD * slot)

    def _send(self, slot: int) -> None:
        # Full: it was woken already. Refused or gone: it is dead, its slot will be taken over.
        # Another user's: that process polls once a second. A put that is stored does not fail for a
        # waker.
        with self._lock:
            known = self._sockets.get(slot)
            try:
                if known is not None:
                    with full_is_busy():
                        known.send(b"!")
            except ConnectionError:
                self._sockets.pop(slot).close()
                known = None
            except OSError:
                pass
            if known is None:
                with suppress(OSError):
                    self._connect(slot).send(b"!")

    def _connect(self, slot: int) -> socket.socket:
        made = new_socket()
        try:
            folder = socket_folder(self._directory)
            try:
                folder.connect(made, str(slot))
            finally:
                folder.close()
        except BaseException:
            made.close()
            raise
        self._sockets[slot] = made
        return made

    def close(self) -> None:
        """Close the sockets."""
        with self._lock:
            while self._sockets:
                self._sockets.popitem()[1].close()


def _poll_of(waited_on: socket.socket) -> Callable[[int], list[tuple[int, int]]]:
    import select

    made = select.poll()
    made.register(waited_on, select.POLLIN)
    return made.poll
