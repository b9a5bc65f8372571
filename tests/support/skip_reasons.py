"""The reasons that a test may be skipped for."""

from __future__ import annotations

import re
from typing import Final

ALLOWED: Final = re.compile(
    r"(?:Skipped: )?needs "
    r"(a JDK|Maven|Java|Linux|root|a package registry|\w+ on PATH|a file system .+"
    r"|an x86 processor: .+"
    r"|the history of git|the (bench|docs) extra: .+|the packages of pyspark\[connect\]"
    r"|RMQCTL_PURE to be empty|the forms of Linux: RMQCTL_POSIX is set)"
)
"""Any other reason fails the run: a skip that was not checked is a test that never runs."""
