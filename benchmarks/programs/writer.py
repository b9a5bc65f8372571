"""Writes batches of 100 x 1 KiB on request; prints when it began and ended (monotonic ns)."""

from __future__ import annotations

import sys
import time

from benchmarks.ours import put_column
from benchmarks.workload import columns
from storage.store import MessageStore

with MessageStore.open(sys.argv[1]) as store:
    batches = columns(10, 100, 1024)
    put_column(store, batches[0])
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.monotonic_ns()
    for number in range(int(sys.argv[2])):
        put_column(store, batches[number % 10])
    print(start, time.monotonic_ns())
