"""Another program that holds a store as a Java broker does."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_HOLD = """
import fcntl, sys
f = open(sys.argv[1], 'r+b')
fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
print('locked', flush=True)
sys.stdin.read()
"""


@contextmanager
def java_lock(root: Path) -> Iterator[int]:
    """Hold a POSIX lock on byte 0 in another process; gives its pid."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, root / "lock"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        yield holder.pid
        holder.stdin.close()
