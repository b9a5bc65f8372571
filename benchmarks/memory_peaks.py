"""Anonymous memory of a program and of its children: Spark's JVM, and its Python workers."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from .process_memory import ANONYMOUS, memory_bytes, require_proc
from .run import NotMeasurableError

_LOOK_S = 0.01
JVM = "the JVM"
WORKER = "a worker"


class Watched(NamedTuple):
    """What a program printed, the most anonymous memory (MB) of any process of a kind, and how long
    it took."""

    stdout: bytes
    peaks: dict[str, float]
    seconds: float


def watched(command: Sequence[str], own: str) -> Watched:
    """Run a program to its end; ``own`` names its own process among the peaks.

    Raises NotMeasurableError if it fails, or where there is no /proc.
    """
    require_proc()
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        peaks: dict[str, float] = defaultdict(float)
        chunks: dict[str, bytes] = {}
        readers = [
            threading.Thread(target=lambda name=name, pipe=pipe: chunks.update({name: pipe.read()}))
            for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr))
        ]
        for reader in readers:
            reader.start()
        while process.poll() is None:
            for pid, kind in _family(process.pid, own):
                peaks[kind] = max(peaks[kind], _anonymous(pid))
            time.sleep(_LOOK_S)
        for reader in readers:
            reader.join()
        seconds = time.perf_counter() - start
        if process.returncode:
            raise NotMeasurableError(chunks["stderr"].decode(errors="replace")[-200:])
    return Watched(chunks["stdout"], dict(peaks), seconds)


def _family(pid: int, kind: str) -> Iterator[tuple[int, str]]:
    yield pid, kind
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
        children = [int(word) for task in tasks for word in task.read_text().split()]
    except OSError:
        return
    for child in children:
        try:
            program = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            continue
        yield from _family(child, JVM if program.endswith(b"java") else WORKER)


def _anonymous(pid: int) -> float:
    try:
        return memory_bytes(ANONYMOUS, pid) / 1e6
    except OSError:
        return 0
