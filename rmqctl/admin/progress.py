"""Progress of long work, reported to a :data:`Phase`.

A phase is called when a part of the work begins, with the part's name and its number of bytes (None
if unknown). It returns the function that gets the number of bytes as they are done. An exception
from either of them ends the work: so a program stops it. Nothing half made is left then.
"""

from collections.abc import Callable

from storage.files.checksum import Tick, no_tick

__all__ = ["Phase", "Tick", "Walked", "no_phase", "walked"]

Phase = Callable[[str, int | None], Tick]
"""Called with the name of a part of the work and its bytes; returns what takes those done."""

Walked = Callable[[int, int], None]
"""Called with the bytes that are done and those of the whole part."""


def no_phase(_: str, __: int | None) -> Tick:
    """Ignore progress."""
    return no_tick


def walked(phase: Phase, label: str) -> Walked:
    """Report to a phase from work that reports what is done and the total.

    The phase begins with the first report, and again where the work starts anew.
    """
    tick: Tick | None = None
    before = last_total = 0

    def note(done: int, total: int) -> None:
        nonlocal tick, before, last_total
        if tick is None or done < before or total != last_total:
            tick, before, last_total = phase(label, total), 0, total
        tick(done - before)
        before = done

    return note
