"""The packages that Spark's workers need, as one zip for ``--py-files``."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGES: Final = ("analytics", "broker", "pyspark_rocketmq", "storage")
"""What the data source, the sink and the lag report import of rmqctl."""
_SUFFIXES: Final = frozenset({".py", ".html", ".js", ".css"})
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def zip_packages(path: str | Path) -> str:
    """Write the packages into a zip; gives its path. Raises OSError.

    They run on every worker whose Python has numpy, pyarrow and PySpark. Compiled forms are left
    out, as Python cannot load them from a zip: the forms in Python give the same rows, more slowly.
    """
    from storage.files.creating import replacing

    target = Path(path).absolute()
    with replacing(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in sorted(_files()):
            archive.writestr(zipfile.ZipInfo(name, _TIME), source.read_bytes())
    return str(target)


def _files() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        for folder in spec.submodule_search_locations or ():
            for path in Path(folder).rglob("*"):
                if path.suffix in _SUFFIXES and path.is_file():
                    yield f"{package}/{path.relative_to(folder)}", path
