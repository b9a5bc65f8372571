"""``rmqctl bench`` against the bare loop that it consists of, and the evenness of its rate."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.report import Goal, Row
from benchmarks.run import Run
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.bench.bodies import MEASURED, sized_bodies
from rmqctl.bench.load import Load, Measured, Plan
from rmqctl.bench.run import rate_error

NAME = "load"
_BODY = 1024
_TOPIC = "load"
_RATE = 5000.0


def measure(run: Run) -> Iterator[Row]:
    count = run.sized(10_000, 2_000)  # a load lasts: what starting it takes is not counted
    bodies = sized_bodies(_BODY)
    plan = Plan(_TOPIC, bodies, False, None, 1, 1, 0, None, count)
    with run.folder() as folder:
        create_store(folder / "store")
        with EmbeddedBroker.open(folder / "store") as broker:
            # The even rate first: the disk has nothing else to write yet.
            paced = plan._replace(
                rate=_RATE, most=None, duration_ns=run.sized(10, 3) * 1_000_000_000
            )
            measured = _load(broker, paced)
            _load(broker, plan)
            ratios = []
            for _ in range(run.sized(81, 9)):
                before = _cpu(lambda: _bare(broker, count))
                ours = _cpu(lambda: _load(broker, plan))
                after = _cpu(lambda: _bare(broker, count))
                ratios.append(2 * ours / (before + after))
    middle = sorted(ratios)[len(ratios) // 2]
    yield Row(
        "processor time of a load against a bare loop of sends",
        f"{middle:.3f} times",
        "1",
        ratios,
        Goal(1.05, at_most=True),
        "",
    )
    error = rate_error(paced, measured)
    yield Row(
        f"rate error in the worst second at {_RATE:,.0f} messages a second",
        "-" if error is None else f"{error:.2%}",
        "0 %",
        [1.0 if error is None else error],
        Goal(0.01, at_most=True, percent=True),
        "",
    )
    late = (measured.pacing.percentile(99.9) or 0) / 1e6
    yield Row(
        f"pacing at {_RATE:,.0f} messages a second, p99.9",
        f"{late:.3f} ms",
        "2 ms",
        [late],
        Goal(2.0, at_most=True),
        "ms",
    )


def _cpu(work: Callable[[], object]) -> int:
    """Processor time of the sends: all threads of this process but the store's ``pages-ahead``.

    That thread makes pages for later sends, a window of 16 MiB at a time. Each of three works of a
    round sends about 11 MiB, so the same one of them would pay for the pages in each round.
    """
    gc.collect()
    begun, ahead = time.process_time_ns(), _pages_ahead()
    work()
    return time.process_time_ns() - begun - (_pages_ahead() - ahead)


def _pages_ahead() -> int:
    """Processor time of the thread so far; it lasts as long as the log's file."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended
            if (thread / "comm").read_text() == "pages-ahead\n":
                return int((thread / "schedstat").read_text().split()[0])
    return 0


def _bare(broker: EmbeddedBroker, count: int) -> None:
    """The same messages, with the time in each, in the shortest loop."""
    make, send, clock = sized_bodies(_BODY), broker.send_column, time.monotonic_ns
    for _ in range(count):
        send(_TOPIC, make(1, 1, MEASURED % clock()))


def _load(broker: EmbeddedBroker, plan: Plan) -> Measured:
    load = Load(broker, plan)
    load.start()
    while not load.wait(60):
        pass
    return load.measured()
