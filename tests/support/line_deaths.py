"""Processes that end in the line of the write lock.

Runs in a slim interpreter (tests.support.slim).
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from storage.coordination.shared_state import SharedState, Word
from storage.coordination.write_lock_line import WaitingLine, line_of_unmapped
from tests.support.busy_puppet import ROOMY
from tests.support.crash import Child, die
from tests.support.line import stands_in_line, until
from tests.support.samples import open_store


def killed_before_waking(root: str) -> dict[str, bool]:
    """A holder is killed after it has released the lock, before it wakes the process that waits."""
    place = Path(root)
    store = open_store(place, ROOMY)
    reading, writing = os.pipe()

    def hold(_: object) -> None:
        own = open_store(place, ROOMY)
        with own.write_lock():
            os.write(writing, b"!")
            WaitingLine.wake_next = lambda *_, **__: die()  # type: ignore[method-assign]
            _wait_for_request(own._shared)

    child = Child(hold)
    os.read(reading, 1)
    with store.write_lock():
        waited = True
    killed, _ = child.wait()
    store.close()
    return {"killed": killed, "waited": waited}


def ended_when_woken(root: str, end: int) -> dict[str, bool]:
    """The first of two that wait is killed or stopped when it is woken; the other one gets the
    lock."""
    place = Path(root)
    holder, second = (open_store(place, ROOMY) for _ in range(2))
    reading, writing = os.pipe()

    def stand_first(_: object) -> None:
        line = line_of_unmapped(place)
        assert line is not None
        seen = line.seen(Word.LINE_ONCE)
        line.sleep(Word.LINE_ONCE, seen, 60)
        os.write(writing, b"!" if line.seen(Word.LINE_ONCE) != seen else b"?")
        os.kill(os.getpid(), end)

    child = Child(stand_first)
    waited: list[bool] = []

    def wait() -> None:
        with second.write_lock():
            waited.append(True)

    with holder.write_lock():
        until(lambda: stands_in_line(child.pid, child.pid), "in line")
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: stands_in_line(os.getpid(), thread.native_id), "in line")
    was_woken = os.read(reading, 1) == b"!"
    thread.join(30)
    os.kill(child.pid, signal.SIGKILL)
    os.close(child.pipe)
    os.waitpid(child.pid, 0)
    holder.close()
    second.close()
    return {"woken": was_woken, "waited": bool(waited)}


def _wait_for_request(shared: SharedState) -> None:
    before = shared.words[Word.LOCK_WANTED]
    until(lambda: shared.words[Word.LOCK_WANTED] != before, "a request")
