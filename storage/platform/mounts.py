"""The file system that holds a path.

Linux: its table of mounts. Any POSIX system: what ``mount`` prints, of which there are two kinds
(``on POINT type KIND (``, and ``on POINT (KIND,``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from . import form

_PRINTED: Final = r"^.+? on (/.*?) (?:type (\S+) )?\((\w*).*\)$"
_SECONDS: Final = 5
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "9p", "fuse.sshfs"}
)
"""Kinds of file systems whose locks and maps are not shared reliably between machines."""


def _of_table(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    fields = (line.split() for line in lines)
    return _nearest(path, ((f[1].replace("\\040", " "), f[2]) for f in fields if len(f) > 2))


def _of_program(path: Path) -> str:
    return _nearest(path, printed_mounts(_printed()))


@lru_cache(maxsize=1)
def _printed() -> str:
    """What ``mount`` prints, once for a process."""
    import subprocess

    for program in ("/sbin/mount", "/bin/mount", "mount"):
        try:
            done = subprocess.run(
                [program], capture_output=True, text=True, timeout=_SECONDS, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return done.stdout
    return ""


def printed_mounts(text: str) -> Iterator[tuple[str, str]]:
    """Mount points and kinds of file systems in what ``mount`` prints."""
    for line in text.splitlines():
        found = re.match(_PRINTED, line)
        if found is not None:
            yield found[1], found[2] or found[3]


def _nearest(path: Path, mounts: Iterable[tuple[str, str]]) -> str:
    try:
        wanted = str(path.resolve())
    except OSError:
        return ""
    best, kind = "", ""
    for point, name in mounts:
        inside = wanted == point or wanted.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, name
    return kind


file_system_of: Final = form(_of_table, _of_program)
"""Type of the file system that holds a path as the system names it, '' if unknown."""
