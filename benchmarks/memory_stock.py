"""Free memory for a contestant, ready for use.

A virtual machine may return free memory to its host within seconds, in blocks of 2 MiB and more;
the first use then takes many times longer. So a separate process touches the memory that a round
will fill and keeps it, before each contestant alike, and frees it while that one runs, some 100 MiB
ahead of its use.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_BLOCKS = Path("/proc/buddyinfo")
_PROGRAM = Path(__file__).with_name("programs") / "memory_stock.py"


@contextmanager
def memory_stock(size: int, scraps: int | None = None) -> Iterator[Callable[[], None]]:
    """Gives a function that fills the stock up to ``size`` bytes, and waits until that is done.

    It also touches up to ``scraps`` bytes of free memory in small blocks, None: all.

    Where the system does not report its free memory, nothing is held.
    """
    if not size or not _BLOCKS.exists():
        yield lambda: None
        return
    with subprocess.Popen(
        [sys.executable, str(_PROGRAM), str(size), str(sys.maxsize if scraps is None else scraps)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        wanted, said = process.stdin, process.stdout
        assert wanted is not None
        assert said is not None

        def fill() -> None:
            wanted.write("fill\n")
            if not said.readline():
                raise RuntimeError(f"the process that holds {size:,} bytes of memory has ended")

        yield fill
