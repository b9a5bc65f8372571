"""How long the store took to acknowledge: what ``produce -v`` says at the end."""

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
        """Time a batch; one that fails counts nothing."""
        begun = self._clock()
        yield
        self._times.append(self._clock() - begun)

    def sentence(self) -> str:
        """Half of them, 99 of 100, and the longest; nothing if there were none."""
        times = sorted(self._times)
        if not times:
            return ""
        middle, most = times[len(times) // 2], times[len(times) * 99 // 100]
        what = "1 batch" if len(times) == 1 else f"{len(times):,} batches"
        return (
            f"{what} acknowledged: half of them within {_shown(middle)}, 99 % within "
            f"{_shown(most)}, all within {_shown(times[-1])}"
        )


def _shown(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:.3g} ms" if nanoseconds < 10**9 else f"{nanoseconds / 1e9:.3g} s"
