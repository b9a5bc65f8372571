"""Starting threads so that each running one is registered."""

from __future__ import annotations

import threading
from collections.abc import Callable


def start_among(
    threads: list[threading.Thread],
    lock: threading.Lock | threading.Condition,
    run: Callable[[], None],
    name: str,
) -> None:
    """Start a daemon thread and add it to ``threads``. Hold ``lock``: the thread waits for it.

    A start that Ctrl-C interrupted adds none, and its thread ends without a call of ``run``. Raises
    RuntimeError if the system gives no thread.
    """

    def begin() -> None:
        with lock:
            if threading.current_thread() not in threads:
                return
        run()

    thread = threading.Thread(target=begin, name=name, daemon=True)
    thread.start()
    threads.append(thread)
