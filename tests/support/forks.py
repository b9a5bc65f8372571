"""What os.fork must not do to a store. Runs in a slim interpreter (tests.support.slim)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from storage.coordination.locks import LockFile
from storage.errors import StoreClosedError
from storage.store import MessageStore
from tests.support.busy_puppet import ROOMY
from tests.support.samples import Sample, open_store, prepared

GATE_TIMEOUT_MS = 20_000


def use_after_fork(root: str) -> list[str]:
    """Fork with the store open; gives what went wrong."""
    place = Path(root)
    store = open_store(place, gate_timeout_ms=GATE_TIMEOUT_MS)
    store.put(prepared([Sample("parent-1", "A")]))
    problems = _in_child(lambda: _child(store, place))
    rival = LockFile(place / "lock")
    if rival.try_lock(0, exclusive=True):
        problems.append("the parent has lost its lock on byte 0")
    rival.close()
    store.put(prepared([Sample("parent-2", "A")]))

    with store.write_lock():  # also with the write lock held, which the child must not inherit
        problems += _in_child(lambda: _child_beside_the_gate(store, place))
        problems += _in_child(lambda: _child_closes(store))
        rival = LockFile(place / "lock")
        if rival.try_lock(1, exclusive=True):
            problems.append("the parent has lost the gate")
        rival.close()
    store.close()
    if (place / "abort").exists():
        problems.append("abort stays")
    return problems


def fork_while_held_on(root: str) -> list[str]:
    """Fork while the write lock is kept between two puts; gives what went wrong."""
    place = Path(root)
    store = open_store(place, ROOMY)
    number = 0
    while not store._write_lock.biased:
        store.put(prepared([Sample(f"parent-{number}", "A")]))
        number += 1
    problems = _in_child(lambda: _child(store, place))
    store.put(prepared([Sample("parent-last", "A")]))
    store.close()
    if (place / "abort").exists():
        problems.append("abort stays")
    return problems


def _child(store: object, place: Path) -> list[str]:
    problems = []
    for use in ("put", "flush", "gate"):
        try:
            if use == "put":
                store.put(prepared([Sample("child", "A")]))  # type: ignore[attr-defined]
            elif use == "flush":
                store.flush()  # type: ignore[attr-defined]
            else:
                with store.write_lock():  # type: ignore[attr-defined]
                    pass
        except StoreClosedError as error:
            if "fork" not in str(error):
                problems.append(f"{use}: {error}")
        else:
            problems.append(f"a child may {use}")
    store.close()  # type: ignore[attr-defined]
    own = open_store(place, store.config)  # type: ignore[attr-defined]
    if own.recovery is not None:
        problems.append("the child took itself for the first in")
    own.put(prepared([Sample("child-own", "A")]))
    own.close()
    if not (place / "abort").exists():
        problems.append("the child took itself for the last out")
    return problems


def _child_beside_the_gate(store: object, place: Path) -> list[str]:
    del store
    lock = LockFile(place / "lock")
    taken = lock.try_lock(1)
    lock.close()
    return ["the gate is not the parent's alone"] if taken else []


def _child_closes(store: MessageStore) -> list[str]:
    """The thread mutex belongs to a thread that the child has not: it must not wait for it."""
    began = time.monotonic()
    store.close()
    waits = time.monotonic() - began >= GATE_TIMEOUT_MS / 1000
    return ["a copy waits for the turn"] if waits else []


def _in_child(run: Callable[[], list[str]]) -> list[str]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            problems = run()
        except BaseException as error:  # noqa: BLE001 - it must not run on as the parent
            problems = [repr(error)]
        os.write(writing, "\n".join(problems).encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(pid, 0)
    text = os.read(reading, 1 << 16).decode()
    os.close(reading)
    return text.splitlines() + ([f"status {status}"] if status else [])
