"""Signals that raise in the middle of puts, as Ctrl-C does. Runs in a slim interpreter, whose
no other code uses signals (tests.support.slim)."""

from __future__ import annotations

import random
import signal
from contextlib import suppress
from pathlib import Path
from types import FrameType

from storage.coordination.locks import LockFile
from storage.coordination.write_lock import WRITE_LOCK_BYTE
from storage.store import MessageStore
from tests.support.busy_puppet import ROOMY
from tests.support.crash import inspect
from tests.support.samples import Sample, new_store, prepared


class _Interrupt(BaseException):
    pass


def interrupt_puts(
    folder: str, seed: int, rounds: int, exclusive: bool, several: bool
) -> dict[str, object]:
    """Put until a signal comes, ``rounds`` times; then the next put must go as ever.

    ``several`` puts two at a time. Gives what went wrong and how many puts there were.
    """
    chance = random.Random(seed)
    root = new_store(Path(folder) / f"interrupts-{seed}", ROOMY)
    problems: list[str] = []
    begun = puts = 0
    came = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True  # what is raised in a callback of the interpreter's is lost
        raise _Interrupt

    signal.signal(signal.SIGALRM, interrupt)
    store = MessageStore.open(root, ROOMY, exclusive=exclusive, gate_timeout_ms=100)
    rival = LockFile(root / "lock")

    def put() -> None:
        nonlocal begun, puts
        begun += 1
        if several:
            store.put(prepared([Sample(f"{begun}{end}", "T") for end in "ab"]))
        else:
            store.put_message(Sample(f"{begun}", "T").inner())
        puts += 1

    for _ in range(rounds):
        came = False
        with suppress(_Interrupt):
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(5e-5, 5e-4))
            while not came:
                put()
        try:
            put()
        except Exception as error:  # noqa: BLE001 - reported below
            problems.append(repr(error))
            break
    store.close()
    if not rival.try_lock(WRITE_LOCK_BYTE) or not rival.try_lock(0):
        problems.append("a lock is left")
    rival.close()
    with MessageStore.open(root, ROOMY) as again:
        if again.recovery is not None:
            problems.append("it was not closed cleanly")
        stored = again.view.max_offset_in_queue("T", 0)
    if stored < puts * (1 + several):
        problems.append(f"{puts} puts, {stored} messages")
    return {"failures": problems + inspect(root, ROOMY).problems, "puts": puts}
