"""The process that Spark forks workers from in place of its own daemon: with all imports done.

Each worker is a fork of this process. Modules imported here are imported once, and frozen objects
are skipped by the garbage collection that follows each task.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Final

_LOADED: Final = ("numpy", "pyspark.worker", "analytics.engines.task")


def main() -> None:
    """Load the imports of tasks, then run Spark's daemon."""
    sys.path[:] = [path for path in sys.path if not path.endswith(".zip")]
    for name in _LOADED:
        import_module(name)
    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
