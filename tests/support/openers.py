"""Processes that open one store at the same instant, in a slim interpreter (slim.py)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy  # noqa: F401 - once, before the forks

from tests.support.samples import Sample, open_store, prepared


def open_at_once(root: str, processes: int, gate_timeout_ms: int) -> list[str]:
    """Each process opens the store, puts one message and closes it; gives the errors."""
    begin, release = os.pipe()
    answers, answer = os.pipe()
    pids = []
    for number in range(processes):
        pid = os.fork()
        if not pid:
            os.close(release)
            os.read(begin, 1)  # returns when the parent closes its end
            os.write(answer, _opened(Path(root), number, gate_timeout_ms).encode())
            os._exit(0)
        pids.append(pid)
    os.close(answer)
    os.close(release)
    with os.fdopen(answers) as lines:
        said = lines.read().splitlines()
    for pid in pids:
        os.waitpid(pid, 0)
    return [line for line in said if line != "done"] + ["silent"] * (processes - len(said))


def _opened(root: Path, number: int, gate_timeout_ms: int) -> str:
    try:
        with open_store(root, gate_timeout_ms=gate_timeout_ms) as store:
            store.put(prepared([Sample(f"m{number}", "A")]))
    except Exception as error:  # noqa: BLE001 - the test judges it
        return f"{type(error).__name__}: {error}\n"
    return "done\n"
