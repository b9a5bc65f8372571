"""Messages and bytes by a key, as columns; and rows that are made on each iteration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Row = dict[str, Any]


class Amounts(NamedTuple):
    """Messages and bytes by key, column by column; keys ascend, each is there once."""

    keys: NDArray[np.int64]
    messages: NDArray[np.int64]
    bytes: NDArray[np.int64]

    def by(self, keys: NDArray[np.int64]) -> Amounts:
        """The same amounts by other keys, one for each of the old ones."""
        return added_up([self._replace(keys=keys)])


def added_up(parts: Sequence[Amounts]) -> Amounts:
    """Add amounts, whose keys may come in any order here, and several times."""
    if len(parts) == 1 and (np.diff(parts[0].keys) > 0).all():
        return parts[0]
    names, codes = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    return Amounts(
        names,
        _sums(codes, np.concatenate([part.messages for part in parts]), len(names)),
        _sums(codes, np.concatenate([part.bytes for part in parts]), len(names)),
    )


def _sums(codes: NDArray[np.intp], values: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    total = np.zeros(count, np.int64)
    np.add.at(total, codes, values)
    return total


class Rows(Collection[Row]):
    """Rows that are made anew at each iteration: most reports show few."""

    def __init__(self, make: Callable[[], Iterator[Row]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Row]:
        """Make them."""
        return self._make()

    def __len__(self) -> int:
        """Number of rows; makes them."""
        return sum(1 for _ in self)

    def __contains__(self, row: object) -> bool:
        """Whether there is such a row; makes them."""
        return any(row == mine for mine in self)
