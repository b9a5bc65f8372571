"""A part of a store as a store of its own: whole processes of ``store carve``.

The store is built once; a round carves the middle half of its time out of it, as the records are
and with their keys masked, each time into a folder that is not there. Beside it ``cat`` copies as
many bytes of the log into a file. Carving also makes queues and the key index, and ends when the
device has everything; ``cat`` ends when the page cache has.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.commands import rmqctl, seconds_of
from benchmarks.ours import new_store, put_column
from benchmarks.report import Goal, Row
from benchmarks.run import NotMeasurableError, Run
from benchmarks.workload import QUEUES, TOPIC, columns
from storage.format.names import COMMITLOG
from storage.readonly import Boundary, StoreView

NAME = "carve"
_BATCH = 1_000
_BODY = 1024 - 180  # the records have 1 KiB
_MASK = ("--mask", "keys=hash")


def measure(run: Run) -> Iterator[Row]:
    with run.folder() as folder:
        root = _store(run, folder)
        times, count, size = _middle(root)
        part = folder / "part"
        _cut(root, part, size)

        def carve(*more: str) -> float:
            return _carve(root, folder / "out", count, [*times, *more])

        taken = run.take_turns(
            "carve",
            {
                "as it is": carve,
                "masked": lambda: carve(*_MASK),
                "cat": lambda: _cat(part, folder / "copy"),
            },
        )
    million = count / 1e6
    least = None if run.quick else Goal(0.15)  # what is little is gone with starting and syncing
    masked = None if run.quick else Goal(0.2)
    for name, goal in (("as it is", least), ("masked", masked)):
        yield Row(
            f"store carve of half a store of 1 KiB records, {name}",
            f"{taken.median(name):.2f} s",
            f"{million:.2f} M records",
            [million / seconds for seconds in taken.of[name]],
            goal,
            "M/s",
            samples={name: taken.of[name]},
        )
    yield Row(
        f"... beside cat of {size >> 20} MiB, without a sync",
        f"{taken.median('as it is'):.2f} s",
        f"{taken.median('cat'):.2f} s",
        taken.ratios("as it is", "cat"),
        None if run.quick else Goal(4, at_most=True),
    )


def _store(run: Run, folder: Path) -> Path:
    size = run.sized(1 << 30, 1 << 27)
    with new_store(folder) as store:
        batches = columns(20, _BATCH, _BODY)
        while store.log_end < size - (22 << 20):
            for column in batches:
                put_column(store, column)
    return folder / "store"


def _middle(root: Path) -> tuple[list[str], int, int]:
    """The middle half of the time of the store: options, messages, and bytes of the log."""
    with StoreView.open(root) as view:
        low, high = view.queue_bounds(TOPIC, 0)
        ends = [view.store_timestamp(TOPIC, 0, low + (high - low) * part // 4) for part in (1, 3)]
        if None in ends or ends[0] == ends[1]:
            raise NotMeasurableError("the store was filled within a millisecond")
        first, stop = (
            sum(
                view.offset_in_queue_by_time(TOPIC, queue_id, end or 0, Boundary.LOWER)
                for queue_id in range(QUEUES)
            )
            for end in ends
        )
        count = stop - first
    times = ["--from", str(ends[0]), "--to", str(ends[1])]
    return times, count, count << 10


def _cut(root: Path, part: Path, size: int) -> None:
    """So many bytes of the log as a file."""
    log_file = min((root / COMMITLOG).iterdir())
    with log_file.open("rb") as log, part.open("wb") as to:
        while size > 0:
            size -= to.write(log.read(min(size, 1 << 20)))


def _carve(root: Path, out: Path, count: int, options: Sequence[str]) -> float:
    what = ["store", "carve", str(out), "-t", TOPIC, *options]
    seconds = seconds_of([*rmqctl(), "-S", str(root), "-q", *what, "--execute", "--yes"])
    with StoreView.open(out) as made:
        bounds = [made.queue_bounds(TOPIC, queue_id) for queue_id in range(QUEUES)]
    if sum(high - low for low, high in bounds) != count:
        raise NotMeasurableError(f"{bounds} are not {count} messages")
    shutil.rmtree(out)
    return seconds


def _cat(part: Path, copy: Path) -> float:
    seconds = seconds_of(["cat", str(part)], output=copy)
    copy.unlink()
    return seconds
