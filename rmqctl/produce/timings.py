"""Times of acknowledgements, which ``produce -v`` prints at the end."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Timings:
    """Collects the times of batches, in nanoseconds."""

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._times: list[int] = []

    @contextmanager
    def one(self) -> Iterator[None]:
        """Measure a batch; a batch that fails does not count."""
        begun = self._clock()
        yield
        self._times.append(self._clock() - begun)

    def sentence(self) -> str:
        """The median, the 99th percentile and the maximum; empty without batches."""
        times = sorted(self._times)
        if not times:
            return ""
        middle, most = times[len(times) // 2], times[len(times) * 99 // 100]
        what = "1 batch" if len(times) == 1 else f"{len(times):,} batches"
        return (
            f"{what} acknowledged: median {_shown(middle)}, 99th percentile {_shown(most)}, "
            f"maximum {_shown(times[-1])}"
        )


def _shown(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.3g} ms" if nanoseconds < 10**9 else f"{nanoseconds / 1e9:.3g} s"
