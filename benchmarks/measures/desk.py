"""Operators' commands: each as a whole process, on large stores.

Every module ``desk_*`` of this folder measures some of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import benchmarks.measures
from benchmarks.report import Row
from benchmarks.run import Run

NAME = "desk"


def measure(run: Run) -> Iterator[Row]:
    for found in pkgutil.iter_modules(benchmarks.measures.__path__):
        if found.name.startswith("desk_"):
            module = importlib.import_module(f"benchmarks.measures.{found.name}")
            yield from module.measure(run)
