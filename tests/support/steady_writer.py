"""A producer of so many messages a second, until SIGTERM: ``python -m tests.support.steady_writer
STORE PREFIX RATE``. Bodies are PREFIX and a number; each minute has a topic of its own. At the end
it prints how many messages were acknowledged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from broker.embedded.broker import EmbeddedBroker
from tests.support.slim import ROOT

_A_SECOND = 10
"""Columns a second."""


def main(store: str, prefix: str, rate: str) -> None:
    """Send until it is asked to end."""
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    size, sent = int(rate) // _A_SECOND, 0
    began = time.monotonic()
    with EmbeddedBroker.open(store) as broker:
        while not ended:
            minute = int(time.monotonic() - began) // 60
            bodies = [b"%s %d" % (prefix.encode(), sent + number) for number in range(size)]
            broker.send_column(f"in_{minute}", bodies)
            sent += size
            if (early := began + sent / int(rate) - time.monotonic()) > 0:
                time.sleep(early)  # this is the rate, and no test waits for it
    sys.stdout.write(f"{sent}\n")


class Writer:
    """The program in a process of its own."""

    def __init__(self, store: Path, prefix: str, rate: int) -> None:
        self.prefix = prefix
        self._process: Any = subprocess.Popen(
            [sys.executable, "-m", "tests.support.steady_writer", store, prefix, str(rate)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self._process.kill()
        if not self._process.stdout.closed:
            self._process.communicate()

    def stop(self) -> int:
        """End it; gives how many messages it has sent."""
        self._process.terminate()
        out, _ = self._process.communicate()
        assert self._process.returncode == 0
        return int(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
