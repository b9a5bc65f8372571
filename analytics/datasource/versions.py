"""The PySpark that the data source needs."""

from __future__ import annotations

import re
from typing import Final

LOWEST: Final = (4, 2)
"""PySpark 4.1 has no limits of a stream's batches (``latestOffset(start, limit)``), and gives the
columns of a reader another Arrow form."""


class PySparkVersionError(Exception):
    """This PySpark is too old for the data source."""


def check_version(version: str) -> None:
    """Raise PySparkVersionError for a version of PySpark that lacks what the source needs."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is not None and tuple(map(int, found.groups())) < LOWEST:
        lowest = ".".join(map(str, LOWEST))
        raise PySparkVersionError(
            f"the data source 'rocketmq' needs PySpark {lowest} or newer, this is {version}; "
            f"pip install 'pyspark>={lowest},<5'"
        )
