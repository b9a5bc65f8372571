"""The file system that holds a path."""

from __future__ import annotations

from pathlib import Path


def file_system_of(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Type of the file system that holds ``path`` as the kernel names it, '' if unknown."""
    try:
        wanted = str(path.resolve())
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        inside = wanted == point or wanted.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind
