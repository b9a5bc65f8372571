"""Starting threads so that none runs which nobody knows of."""

from __future__ import annotations

import threading
from collections.abc import Callable


def start_among(
    threads: list[threading.Thread],
    lock: threading.Lock | threading.Condition,
    run: Callable[[], None],
    name: str,
) -> None:
    """Start a daemon thread that is one of ``threads`` then. Hold ``lock``: it waits for that.

    One whose start Ctrl-C broke off is none of them, and ends without a call of ``run``. Raises
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
