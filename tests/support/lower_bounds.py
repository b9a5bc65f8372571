"""Lower bounds of pyproject.toml as constraints of pip: ``python -m tests.support.lower_bounds``.

Those of what rmqctl needs at run time, and of Spark; tools of development may be of any version.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def lower_bounds(root: Path) -> Iterator[str]:
    """A line for each dependency: ``numpy==1.26``. ValueError for one without a lower bound."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    for text in [*project["dependencies"], *project["optional-dependencies"]["spark"]]:
        needed = Requirement(text)
        lowest = [one.version for one in needed.specifier if one.operator == ">="]
        if len(lowest) != 1:
            raise ValueError(f"{text}: not one lower bound")
        marker = f"; {needed.marker}" if needed.marker else ""
        yield f"{needed.name}=={lowest[0]}{marker}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in lower_bounds(ROOT))
