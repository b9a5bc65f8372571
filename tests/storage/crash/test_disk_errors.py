"""A disk that is full or broken: one clear error, no more writes until reopened, nothing lost."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.errors import StoreError
from storage.store import MessageStore
from tests.support.crash import Acknowledged, Put, fast_folder, inspect, missing
from tests.support.faulty_fs import FaultyFileSystem
from tests.support.samples import (
    START_MS,
    TINY,
    Sample,
    Ticking,
    new_store,
    open_store,
    prepared,
    sync_flush,
)
from tests.support.workloads import SINGLES, make_next_file

PROBE = Put([Sample("probe", "A")])


LONG = pytest.mark.long
EVERY_CALL = pytest.param(1, marks=LONG, id="every call")


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(32, id="some calls"), EVERY_CALL])
@pytest.mark.parametrize(
    ("number", "lasting", "config"),
    [
        # The short run has each pair of these.
        pytest.param(errno.ENOSPC, False, TINY, id="ENOSPC-once-async"),
        pytest.param(errno.EIO, True, TINY, id="EIO-lasting-async"),
        pytest.param(errno.EIO, False, sync_flush(TINY), id="EIO-once-sync"),
        pytest.param(errno.ENOSPC, True, sync_flush(TINY), id="ENOSPC-lasting-sync"),
        pytest.param(errno.EIO, False, TINY, id="EIO-once-async", marks=LONG),
        pytest.param(errno.ENOSPC, True, TINY, id="ENOSPC-lasting-async", marks=LONG),
        pytest.param(errno.ENOSPC, False, sync_flush(TINY), id="ENOSPC-once-sync", marks=LONG),
        pytest.param(errno.EIO, True, sync_flush(TINY), id="EIO-lasting-sync", marks=LONG),
    ],
)
def test_each_call_that_fails_is_one_clear_error_and_loses_nothing(number, lasting, config, step):
    problems: list[str] = []
    first = 1 + (number + 2 * lasting + 4 * (config is TINY)) % step
    with fast_folder() as folder:
        for call in count(first, step):
            fs = FaultyFileSystem(call, number, lasting=lasting)
            root = new_store(folder / f"store-{call}", config)
            found = run_into_error(root, config, fs)
            problems += [f"call {call}, {fs.failed}: {problem}" for problem in found]
            shutil.rmtree(root)
            if not fs.failed or len(problems) > 10:
                break
    assert problems == []
    assert call > 350, "the workload has become too small"


def run_into_error(root: Path, config: StoreConfig, fs: FaultyFileSystem) -> list[str]:
    """The workload until something fails, then what must be true."""
    problems: list[str] = []
    acknowledged: list[Acknowledged] = []
    begun = {"probe"}
    clock = Ticking()
    store: MessageStore | None = None
    try:
        store = open_store(root, config, fs=fs, clock=clock)
        for number, put in enumerate(SINGLES):
            if number == 5:
                store.close()
                store = open_store(root, config, fs=fs, clock=clock)
            begun |= {sample.id for sample in put.samples}
            make_next_file(store, number)
            acknowledge(acknowledged, put, store, whole=put.whole)
        store.close()
    except StoreError as error:
        problems += unclear(error)
        if not fs.failed:
            problems.append(f"an error although nothing failed: {error}")
        if store is not None:
            problems += refuses(store)
            close(store)
    except OSError as error:
        problems.append(f"a bare {error!r}")
    fs.heal()
    store = open_store(root, config, clock=Ticking(START_MS + 3_600_000))
    acknowledge(acknowledged, PROBE, store)
    store.close()
    found = inspect(root, config, with_fsck=fs.calls % 5 == 0)
    there = {record.id for record in found.records}
    problems += [f"{name} was never sent" for name in there - begun]
    return problems + found.problems + missing(found, acknowledged)


def acknowledge(
    acknowledged: list[Acknowledged], put: Put, store: MessageStore, *, whole: bool = False
) -> None:
    result = store.put(prepared(put.samples), whole=whole)
    assert result.status.stored, result
    for sample, place, offset in zip(
        put.samples, result.commitlog_offsets, result.queue_offsets, strict=True
    ):
        acknowledged.append(Acknowledged(sample, int(place), int(offset)))


def unclear(error: StoreError) -> list[str]:
    text = str(error)
    good = len(text) > 30 and "\n" not in text and "Traceback" not in text
    return [] if good else [f"not a clear sentence: {text!r}"]


def refuses(store: MessageStore) -> list[str]:
    """After an error nothing may be written through this opening."""
    try:
        result = store.put(prepared([Sample("refused", "A")]))
    except StoreError:
        return []
    return [f"still writes after an error: {result}"]


def close(store: MessageStore) -> None:
    with suppress(StoreError):
        store.close()
