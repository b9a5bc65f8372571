"""Holds touched memory and frees it in steps, as fast as other processes take it.

On each line of its input it takes all the memory that it may hold, answers with a line, and goes
on; it ends with its input. See ``benchmarks.memory_stock`` for the purpose.
"""

from __future__ import annotations

import mmap
import select
import sys
from pathlib import Path

_PIECE = 32 << 20
_AHEAD = 4 * _PIECE
_LOOK_EVERY_S = 0.005


def _touched(size: int, *, huge: bool) -> mmap.mmap:
    """The page cache takes huge blocks for mapped files, and scraps for what is written to it."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    memory[:: mmap.PAGESIZE] = bytes(-(-size // mmap.PAGESIZE))
    return memory


def _bytes_in_scraps() -> int:
    """Free memory in blocks below the size of a huge page; half of what is free at most."""
    lines = Path("/proc/buddyinfo").read_text().splitlines()
    counts = [[int(count) for count in line.split("zone")[1].split()[1:]] for line in lines]
    scraps = sum(
        count * (mmap.PAGESIZE << order)
        for zone in counts
        for order, count in enumerate(zone)
        if mmap.PAGESIZE << order < 2 << 20
    )
    return min(scraps, _free_bytes() // 2)


def _free_bytes() -> int:
    with Path("/proc/meminfo").open() as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemFree:"))


def main(size: int, most_scraps: int) -> None:
    held: list[mmap.mmap] = []
    floor = 0
    while True:
        if select.select([sys.stdin], [], [], _LOOK_EVERY_S if held else None)[0]:
            if not sys.stdin.readline():
                return
            while len(held) * _PIECE < size:
                held.append(_touched(_PIECE, huge=True))
            scraps = min(most_scraps, _bytes_in_scraps())
            _touched(max(mmap.PAGESIZE, scraps), huge=False).close()
            floor = _free_bytes()
            print("filled", flush=True)
        while held and _free_bytes() - floor < _AHEAD:
            held.pop().close()


main(int(sys.argv[1]), int(sys.argv[2]))
