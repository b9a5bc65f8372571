"""Watching other processes in a forked child."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from storage.coordination.failure_detector import FailureDetector
from storage.coordination.processes import ProcessEntries
from tests.support.slim import Slim

PATIENCE_S = 20


def test_a_child_forked_while_its_parent_begins_a_watch_can_watch(tmp_path: Path) -> None:
    found = Slim(f"{__name__}:child_of_a_parent_that_begins_a_watch", folder=str(tmp_path)).result()
    assert found == {"child": 0, "parent goes on": True}


def child_of_a_parent_that_begins_a_watch(folder: str) -> dict[str, object]:
    """Fork while another thread is inside of ``follow``, and watch in the child.

    A profile function holds the other thread where it starts the thread that waits.
    """
    processes = ProcessEntries(Path(folder))
    begins, go_on = threading.Event(), threading.Event()

    def hold(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is threading.Thread.start.__code__:
            sys.setprofile(None)
            begins.set()
            assert go_on.wait(PATIENCE_S)

    def follow() -> None:
        sys.setprofile(hold)
        FailureDetector(processes, "a", threading.Event().set).follow(["b"])

    other = threading.Thread(target=follow)
    other.start()
    assert begins.wait(PATIENCE_S)
    pid = os.fork()
    if pid == 0:
        signal.alarm(PATIENCE_S)
        code = 1
        try:
            noticed = threading.Event()
            FailureDetector(processes, "c", noticed.set).follow(["d"])  # no process: it is dead
            code = 0 if noticed.wait(PATIENCE_S) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    go_on.set()
    other.join(PATIENCE_S)
    return {"child": status, "parent goes on": not other.is_alive()}
