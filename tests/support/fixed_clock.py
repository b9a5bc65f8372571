"""Programs for which the time of day stands still, and disks are as full as wanted: a library of
``fixed_clock.c`` is preloaded."""

import subprocess
import time
from pathlib import Path

DISK_PERCENT = 38
SOURCE = Path(__file__).with_name("fixed_clock.c")


def fixed_clock(folder: Path, now_ms: int) -> dict[str, str]:
    """Compile the library into a folder; the environment of a program whose time it is."""
    library = folder / "fixed_clock.so"
    if not library.exists():
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True
        )
    return {
        "LD_PRELOAD": str(library),
        "FIXED_NOW_MS": str(now_ms),
        "FIXED_DISK_PERCENT": str(DISK_PERCENT),
    }


def today_at(clock: str) -> int:
    """A time of today, ``HH:MM:SS`` UTC, in milliseconds."""
    hours, minutes, seconds = map(int, clock.split(":"))
    day_s = 86_400
    return (int(time.time()) // day_s * day_s + hours * 3600 + minutes * 60 + seconds) * 1000
