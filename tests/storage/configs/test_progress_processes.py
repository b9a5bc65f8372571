"""Several processes commit, one resets, all are killed at any moment: no reset is overwritten,
no acknowledged commit is lost, and progress never goes back within a generation."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress

ROOT = Path(__file__).parents[3]
QUEUES = 4

# Each says what was acknowledged on a pipe that outlives it: "queue generation offset".
COMMITTER = """
import os, random, sys
from pathlib import Path
from storage.configs.progress import ProgressFile
from storage.configs.progress_table import QueueProgress
file = ProgressFile(Path(sys.argv[1]))
known = {q: file.read().get("T@g", q) for q in range(QUEUES)}
while True:
    offered = {}
    for q in random.sample(sorted(known), 2):
        generation, offset = known[q]
        offset = max(0, (offset or 0) + random.randrange(-2, 5))
        offered["T@g", q] = QueueProgress(generation, offset)
    for (_, q), now in file.commit(offered).items():
        known[q] = now
        if now.offset is not None:
            os.write(1, b"c %d %d %d\\n" % (q, now.generation, now.offset))
    if random.random() < 0.2:
        file.export()
"""
RESETTER = """
import os, random, sys
from pathlib import Path
from storage.configs.progress import ProgressFile
file = ProgressFile(Path(sys.argv[1]))
while True:
    q = random.randrange(QUEUES)
    for _, new in file.move({("T@g", q): random.randrange(10)}).values():
        os.write(1, b"r %d %d %d\\n" % (q, new.generation, new.offset))
"""


def start(code: str, root: Path, out: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", f"QUEUES = {QUEUES}\n{code}", str(root)],
        stdout=out,
        env=environment,
        cwd=ROOT,
    )


def check(root: Path, lines: list[str]) -> None:
    """Compare what was acknowledged with what the file says."""
    acknowledged: dict[int, QueueProgress] = {}
    moved: dict[tuple[int, int], int] = {}
    for line in lines:
        what, *numbers = line.split()
        q, generation, offset = map(int, numbers)
        if what == "r":
            assert (q, generation) not in moved, "a generation was given twice"
            moved[q, generation] = offset
        best = acknowledged.get(q)
        if best is None or (generation, offset) > best:
            acknowledged[q] = QueueProgress(generation, offset)
    table = ProgressFile(root).read()
    for q, known in acknowledged.items():
        now = table.get("T@g", q)
        assert now.generation >= known.generation, "a reset was overwritten"
        if now.generation == known.generation:
            assert now.offset is not None
            assert known.offset is not None
            assert now.offset >= known.offset, "an acknowledged commit was lost"


@pytest.mark.crash
def test_killed_committers_and_resetters_lose_nothing(tmp_path):
    (tmp_path / "lock").touch()
    rng = random.Random(7)
    log = tmp_path / "acknowledged"
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    codes = [COMMITTER, COMMITTER, RESETTER]
    processes = [start(code, tmp_path, out) for code in codes]
    try:
        for _ in range(12):
            seen = log.stat().st_size
            while log.stat().st_size < seen + 1000:
                assert all(process.poll() is None for process in processes)
                time.sleep(rng.random() * 0.02)
            victim = rng.randrange(len(processes))
            processes[victim].kill()
            assert processes[victim].wait() == -signal.SIGKILL
            check(tmp_path, whole_lines(log))
            processes[victim] = start(codes[victim], tmp_path, out)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        os.close(out)
    lines = whole_lines(log)
    assert {line[0] for line in lines} == {"c", "r"}
    check(tmp_path, lines)
    ProgressFile(tmp_path).export()
    assert load_consumer_offsets(tmp_path) == ProgressFile(tmp_path).read().offsets()


def whole_lines(log: Path) -> list[str]:
    """Read the log; lines of several processes cannot mix, each is one short write."""
    return [line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
