"""A Python for Spark's workers that does not have rmqctl."""

from __future__ import annotations

import subprocess
import venv
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_PACKAGES: Final = ("pyspark", "py4j", "pyarrow", "numpy", "pandas", "dateutil", "pytz", "six")


def bare_python(folder: Path) -> Path:
    """An environment with PySpark and what it needs, and without rmqctl."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in _PACKAGES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue
        file = Path(spec.origin)
        source = file.parent if file.name == "__init__.py" else file
        for path in (source, source.with_name(f"{source.name}.libs")):
            if path.exists():
                (site / path.name).symlink_to(path)
    python = folder / "bin" / "python"
    words = [str(python), "-P", "-c", "import storage"]
    missing = subprocess.run(words, check=False, capture_output=True, cwd=folder)
    assert missing.returncode != 0
    return python
