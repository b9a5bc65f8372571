"""A Python for Spark's workers that does not have rmqctl."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

import numpy as np
import pandas as pd
import py4j
import pyarrow
import pyspark


def bare_python(folder: Path) -> Path:
    """An environment with PySpark and what it needs, and without rmqctl."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for module in (pyspark, py4j, pyarrow, np, pd):
        source = Path(str(module.__file__)).parent
        (site / source.name).symlink_to(source)
        libraries = source.with_name(f"{source.name}.libs")
        if libraries.exists():
            (site / libraries.name).symlink_to(libraries)
    for name in ("dateutil", "pytz", "six.py", "tzdata"):
        source = Path(str(pd.__file__)).parent.with_name(name)
        if source.exists():
            (site / name).symlink_to(source)
    python = folder / "bin" / "python"
    missing = subprocess.run([python, "-c", "import storage"], check=False, capture_output=True)
    assert missing.returncode != 0
    return python
