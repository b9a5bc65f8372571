"""The kernels in this process, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analytics.kernels.partials import Partials

from .work import Work, do, forget, together

NAME = "local"


def run(works: Sequence[Work], progress: Callable[[int], None] | None = None) -> Partials:
    """Do all works, one after the other. ``progress`` is told how many are done."""
    found = []
    try:
        for number, work in enumerate(works, 1):
            found.append(do(work))
            if progress is not None:
                progress(number)
    finally:
        forget()
    return together(found)
