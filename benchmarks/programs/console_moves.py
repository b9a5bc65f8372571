"""Moves positions of groups: once for each line that comes, whose number is the share.

Arguments: the store, groups, topics, queues. Answers each line when the move is done.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.console_store import Progress, Size

progress = Progress(Path(sys.argv[1]), Size(*map(int, sys.argv[2:5])))
for line in sys.stdin:
    progress.move(float(line))
    print("moved", flush=True)
