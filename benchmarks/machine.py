"""The machine of the measurements, and the versions."""

from __future__ import annotations

import compileall
import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sysconfig
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from storage import native

from .peers.redis_server import server_program
from .run import NotMeasurableError

_OURS = ("rmqctl", "storage", "broker", "client", "analytics")
_PACKAGES = (
    "numpy",
    "isal",
    "lmdb",
    "redis",
    "hiredis",
    "persist-queue",
    "litequeue",
    "diskcache",
    "queuelib",
    "pyspark",
)


def compile_packages() -> None:
    """Write Python's byte code, as an installer does: PYTHONDONTWRITEBYTECODE may be set here."""
    for name in _OURS:
        compileall.compile_dir(Path(__file__).parents[1] / name, quiet=1)


def shape(directory: Path) -> dict[str, str]:
    """Processor, memory, disk and system."""
    size = _found(r"MemTotal:\s+(\d+)", _text("/proc/meminfo"), "0")
    memory = f"{int(size) / (1 << 20):.0f} GiB" if size != "0" else "unknown"
    return {
        "processor": _found(r"model name\s*:\s*(.*)", _text("/proc/cpuinfo"), platform.machine()),
        "processors": str(os.cpu_count() or "unknown"),
        "memory": memory,
        "system": _system(),
        "file system": _file_system(directory),
        "load when it began": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def versions(java_release: str) -> dict[str, str]:
    """Of the interpreter and of every peer; "not there" for what is missing."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    build = "with" if "--enable-optimizations" in arguments else "without"
    found = {"Python": f"{platform.python_version()}, {build} profile-guided optimisation"}
    found["rmqctl's compiled forms"] = "not there" if native.compiled is None else "in use"
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not there"
    found["SQLite of Python"] = sqlite3.sqlite_version
    found["the program sqlite3"] = _first_line(["sqlite3", "--version"])
    try:
        found["redis-server"] = _first_line([server_program(), "--version"])
    except NotMeasurableError:
        found["redis-server"] = "not there"
    found["Java"] = _first_line(["java", "-version"])
    found["RocketMQ"] = java_release
    return found


def _system() -> str:
    """The system without the name of its build."""
    release = platform.release().partition("-")[0]
    library = " ".join(filter(None, platform.libc_ver()))
    return ", ".join(filter(None, (f"{platform.system()} {release}", platform.machine(), library)))


def _first_line(command: Sequence[str]) -> str:
    if shutil.which(command[0]) is None:
        return "not there"
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).splitlines()
    return " ".join(lines[0].split()[:5]) if lines else "unknown"


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _found(pattern: str, text: str, otherwise: str) -> str:
    match = re.search(pattern, text)
    return otherwise if match is None else match.group(1).strip()


def _file_system(directory: Path) -> str:
    """The type of the mount below which a folder lies: the longest that contains it."""
    place = directory.resolve()
    best, kind = -1, "unknown"
    for line in _text("/proc/self/mounts").splitlines():
        _, mount, fs, *_ = line.split()
        if place.is_relative_to(mount) and len(mount) > best:
            best, kind = len(mount), fs
    return kind
