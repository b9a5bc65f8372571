"""The gate: the right to append, open, close and replace configs, held by one process at a time.

Java's ``lock`` file carries both locks of a store on one descriptor, because two files would lose
theirs one after the other when a process dies:

* byte 0: Java's exclusive lock, or the shared lock of every rmqctl process that may write;
* byte 1: the gate.

Waiting for the gate is a short poll and then a helper thread blocked in the kernel, so that a
deadline holds in any thread. Nothing is fair, and nobody steals a lock of a living process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.errors import GateTimeoutError, StoreInUseError

from .locks import Holder, LockFile
from .page import Word

if TYPE_CHECKING:
    from .page import SharedPage

JAVA_BYTE: Final = 0
GATE_BYTE: Final = 1
_FIRST_PAUSE: Final = 50e-6
_LONGEST_PAUSE: Final = 1e-3
_POLL_SECONDS: Final = 5e-3


class Gate:
    """Both locks of one store through one descriptor, and a lock for the threads that share it."""

    def __init__(self, root: Path, lock_path: Path, *, timeout_ms: int) -> None:
        self._root = root
        self._timeout_ms = timeout_ms
        self._file = LockFile(lock_path)
        self._threads = threading.Lock()  # outermost: held whenever byte 1 is held
        self._pending: _KernelWait | None = None  # a blocked thread whose waiter gave up
        self._kept = False
        self.page: SharedPage | None = None
        """Where the holder's pid is noted for those who wait; set once the page is mapped."""

    # -- byte 1 -------------------------------------------------------------------------------

    def acquire(self, timeout_ms: int | None = None) -> None:
        """Take the gate; raises GateTimeoutError after ``timeout_ms`` (default: the store's)."""
        limit = self._timeout_ms if timeout_ms is None else timeout_ms
        if not self._threads.acquire(blocking=False) and not self._threads.acquire(
            timeout=limit / 1000
        ):
            raise GateTimeoutError(self._root, limit, "another thread of this process")
        if self._kept:
            return
        try:
            if self._pending is not None or not self._file.try_lock(GATE_BYTE):
                self._wait(limit)
        except BaseException:
            self._threads.release()
            raise

    def release(self) -> None:
        """Let the next one in; also a full memory barrier, unless the gate is kept."""
        if not self._kept:
            self._file.unlock(GATE_BYTE)
        self._threads.release()

    def keep(self) -> None:
        """Take the gate until :meth:`close`: from now on only threads of this process take turns.

        Raises GateTimeoutError.
        """
        self.acquire()
        self._kept = True
        self._threads.release()

    @contextmanager
    def held(self, timeout_ms: int | None = None) -> Iterator[None]:
        """Hold the gate for a block."""
        self.acquire(timeout_ms)
        try:
            yield
        finally:
            self.release()

    def _wait(self, limit_ms: int) -> None:
        start = time.monotonic()
        deadline = start + limit_ms / 1000
        pause = _FIRST_PAUSE
        while True:
            if self._pending is not None:
                granted = self._pending.until(deadline)
                if granted or self._pending.over:
                    self._pending = None
                if granted:
                    return
            elif self._file.try_lock(GATE_BYTE):
                return
            elif time.monotonic() - start < _POLL_SECONDS:
                time.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)
                continue
            else:
                self._pending = _KernelWait(self._file)
                continue
            if time.monotonic() >= deadline:
                raise GateTimeoutError(self._root, limit_ms, self._describe_holder())

    def _describe_holder(self) -> str:
        from .lock_holder import find_holder, is_stopped

        # The page's word is stale when its writer died and another process is opening the store.
        pid = find_holder(self._file.path, GATE_BYTE)
        if pid is None and self.page is not None:
            pid = int(self.page.words[Word.HOLDER_PID])
        if not pid:
            return "another rmqctl process"
        return f"process {pid}" + (" (stopped)" if is_stopped(pid) else "")

    # -- byte 0 -------------------------------------------------------------------------------

    def share(self) -> None:
        """Take the shared lock that keeps Java out. Raises StoreInUseError if Java is in."""
        while not self._file.try_lock(JAVA_BYTE, exclusive=False):
            holder: Holder | None = self._file.holder(JAVA_BYTE)
            if holder is not None and holder.pid is not None:
                who = f"a Java broker (pid {holder.pid})" if holder.pid else "a Java broker"
                raise StoreInUseError(self._root, who)
            # An OFD lock (a closer's, about to go) or nothing any more: try again.

    def try_alone(self) -> bool:
        """Whether no other process shares byte 0; if so the lock is exclusive now."""
        return self._file.try_lock(JAVA_BYTE, exclusive=True)

    def share_again(self) -> None:
        """Turn the exclusive lock back into the shared one; can not fail."""
        self._file.try_lock(JAVA_BYTE, exclusive=False)

    def unshare(self) -> None:
        """Let go of byte 0."""
        self._file.unlock(JAVA_BYTE)

    def close(self) -> None:
        """Close the descriptor: all locks go, in one step."""
        if self._pending is not None:
            # The thread that is still blocked in the kernel keeps the file, and with it this lock.
            with suppress(OSError, ValueError):
                self._file.unlock(JAVA_BYTE)
        self._file.close()


class _KernelWait:
    """A daemon thread blocked in F_OFD_SETLKW, for one waiter at a time.

    A late success, after the waiter gave up, is undone. Because the lock belongs to the shared
    descriptor, nobody else of this process may try the gate while the thread is blocked: the next
    waiter takes this object over (:meth:`until` again) instead.
    """

    def __init__(self, file: LockFile) -> None:
        self._file = file
        self._decided = threading.Lock()  # guards the three flags below
        self._granted = threading.Event()
        self._abandoned = False
        self.over = False
        """The thread has ended, with the lock granted or undone."""
        threading.Thread(target=self._block, name="gate-wait", daemon=True).start()

    def until(self, deadline: float) -> bool:
        """Wait for the lock; False at the deadline, or if it was undone before we came."""
        with self._decided:
            if self.over and not self._granted.is_set():
                return False
            self._abandoned = False
        try:
            self._granted.wait(max(0.0, deadline - time.monotonic()))
        finally:
            with self._decided:
                granted = self._granted.is_set()
                self._abandoned = not granted
        return granted

    def _block(self) -> None:
        try:
            self._file.lock(GATE_BYTE)
        except (OSError, ValueError):  # the descriptor was closed: nothing to undo
            self.over = True
            return
        with self._decided:
            self.over = True
            if not self._abandoned:
                self._granted.set()
                return
            # A descriptor that was closed meanwhile has taken the lock along.
            with suppress(OSError, ValueError):
                self._file.unlock(GATE_BYTE)
