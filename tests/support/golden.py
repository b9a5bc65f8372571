"""The stores in tests/golden, written by real RocketMQ brokers, and what RocketMQ says of them.

A store is unpacked at most once a process for reading (``store``); a test that writes, or that
opens a store in a way that may repair it, takes its own copy (``extract``). File times are
those of the archive, to the microsecond: RocketMQ 4.9 chooses files by them. Holes stay holes, so
a store of 1.4 GiB takes a few MiB.
"""

import atexit
import json
import lzma
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "golden"


@cache
def names() -> list[str]:
    """Names of all golden stores, sorted."""
    return sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))


@cache
def manifest(name: str) -> dict[str, Any]:
    """What RocketMQ says of a store (fields: tests/golden/README.md). Shared: do not change it."""
    with lzma.open(FOLDER / f"{name}.json.xz", "rt", encoding="utf-8") as file:
        content: dict[str, Any] = json.load(file)
    return content


def extract(name: str, into: Path) -> Path:
    """Unpack a store below ``into`` for the caller to do with as it likes; gives its root."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into / name


@cache
def store(name: str) -> Path:
    """Root of a store for reading only, shared by all tests of this process."""
    return extract(name, _unpacked())


@cache
def _unpacked() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="golden-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def code_of_reading(*args: object) -> int:
    """The exit code of a command that reads a golden store: 8 where it has a message too few."""
    return 8 if any("torn-clean-bad-crc-last" in str(arg) for arg in args) else 0
