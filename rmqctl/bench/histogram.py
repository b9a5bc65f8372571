"""A histogram of whole numbers whose percentiles have three exact digits, as HdrHistogram's."""

from array import array
from collections.abc import Iterable
from typing import Final

_BITS: Final = 11
_FEW: Final = 64
"""So few values are counted one by one."""


class Histogram:
    """Counts values in buckets that grow with the value: at most 1/1024 of it wide.

    Values below 2048 have a bucket each. Each larger power of two is divided into 1024 buckets.
    Recording takes constant time, and the size is bounded by the digits of the largest value.
    """

    __slots__ = ("_counts", "count", "largest", "total")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        self.total = 0
        self.largest = 0

    def record(self, value: int, count: int = 1) -> None:
        """Count a value from 0 on; lower ones count as 0."""
        if value < 0:
            value = 0
        shift = value.bit_length() - _BITS
        index = value if shift <= 0 else (shift << (_BITS - 1)) + (value >> shift)
        counts = self._counts
        counts[index] = counts.get(index, 0) + count
        self.count += count
        self.total += value * count
        if value > self.largest:
            self.largest = value

    def record_all(self, values: "array[int]", count: int = 1) -> None:
        """Count each of the values, as :meth:`record` does; fast for thousands of them."""
        if len(values) < _FEW:
            for value in values:
                self.record(value, count)
            return
        import numpy as np

        numbers = np.maximum(np.frombuffer(values, np.int64), 0)
        # The exponent of a float is the bit length of the integer, up to 53 bits: 104 days.
        shifts = np.maximum(np.frexp(numbers)[1] - _BITS, 0)
        indexes = (shifts << (_BITS - 1)) + (numbers >> shifts)
        found = np.bincount(indexes)  # 44 thousand buckets at most
        filled = np.flatnonzero(found)
        for index, number in zip(filled.tolist(), found[filled].tolist(), strict=True):
            self._counts[index] = self._counts.get(index, 0) + number * count
        self.count += len(numbers) * count
        self.total += int(numbers.sum()) * count
        self.largest = max(self.largest, int(numbers.max()))

    def add(self, other: "Histogram") -> None:
        """Count the values of another histogram, too."""
        self.add_parts(other.parts())

    def parts(self) -> tuple[int, int, list[tuple[int, int]]]:
        """The total, the largest value and the counts, as :meth:`add_parts` takes them."""
        return self.total, self.largest, list(self._counts.items())

    def add_parts(self, parts: tuple[int, int, Iterable[tuple[int, int]]]) -> None:
        """Count what :meth:`parts` of a histogram, of another process too, returned."""
        total, largest, counts = parts
        for index, count in counts:
            self._counts[index] = self._counts.get(index, 0) + count
            self.count += count
        self.total += total
        self.largest = max(self.largest, largest)

    @property
    def mean(self) -> float | None:
        """The mean of the values as they were; None without values."""
        return self.total / self.count if self.count else None

    def percentile(self, percent: float) -> int | None:
        """The smallest value that is not exceeded by so many percent of the values, to three
        digits and never less than it; None without values."""
        if not self.count:
            return None
        # A rounding error of the product must not skip a value.
        rank = max(1, -int(-round(self.count * percent / 100, 6) // 1))
        seen = 0
        for index in sorted(self._counts):
            seen += self._counts[index]
            if seen >= rank:
                return min(_last_of(index), self.largest)
        return self.largest


def _last_of(index: int) -> int:
    """The largest value of a bucket."""
    shift = max(0, (index >> (_BITS - 1)) - 1)
    return ((index - (shift << (_BITS - 1)) + 1) << shift) - 1
