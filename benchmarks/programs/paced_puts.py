"""Puts a message of 1 KiB each millisecond; prints how long a put takes at the 99th percentile, in
microseconds.

``paced_puts.py STORE NUMBER`` puts NUMBER messages; with ``-`` for STORE it puts none, and prints
how much later than asked for a sleep of a millisecond ends. After ``ready`` it waits for a line.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from benchmarks.workload import messages
from storage.format.encode import prepare
from storage.store import MessageStore

_PAUSE_NS = 1_000_000


def _put_times(store: MessageStore, number: int) -> Callable[[], list[int]]:
    batches = [prepare([message]) for message in messages(number, 1024)]

    def measure() -> list[int]:
        times = []
        for batch in batches:
            time.sleep(_PAUSE_NS / 1e9)
            start = time.monotonic_ns()
            store.put(batch)
            times.append(time.monotonic_ns() - start)
        return times

    return measure


def _late_wakes(number: int) -> list[int]:
    times = []
    for _ in range(number):
        start = time.monotonic_ns()
        time.sleep(_PAUSE_NS / 1e9)
        times.append(time.monotonic_ns() - start - _PAUSE_NS)
    return times


def main() -> None:
    """Measure when the line comes."""
    number = int(sys.argv[2])
    with ExitStack() as stack:
        measure: Callable[[], list[int]]
        if sys.argv[1] == "-":
            measure = partial(_late_wakes, number)
        else:
            measure = _put_times(stack.enter_context(MessageStore.open(sys.argv[1])), number)
        print("ready", flush=True)
        sys.stdin.readline()
        print(sorted(measure())[number * 99 // 100] // 1000, flush=True)


main()
