"""No operation costs more calls, system calls, stored bytes or memory than was written down.

Times are measured in ``make bench``; counts hold on any machine. Something got cheaper? Then
``python -m tests.support.operation_counts --write`` notes it, so that it stays.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.linux_forms import needs_linux_forms
from tests.support.operation_counts import OPERATIONS, PYTHON, Counts, recorded

MORE = Counts(python_calls=1.05, c_calls=1.05, system_calls=1.1, stored_bytes=1.01, peak_bytes=1.1)
ROOM = Counts(python_calls=1, c_calls=2, system_calls=0.25, stored_bytes=16, peak_bytes=2_000)
"""What a busy machine adds: the write lock is taken again after 10 ms, busy or not."""
LESS = 0.85
"""Below this share of what is written down the table says less than it could."""


@pytest.mark.slow
@needs_linux_forms
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_costs_what_is_written_down(tmp_path: Path, name: str) -> None:
    written, found = recorded()[name], OPERATIONS[name](tmp_path / "store")
    for what, was, now, more, room in zip(Counts._fields, written, found, MORE, ROOM, strict=True):
        assert now <= was * more + room, f"{name}: {what} was {was}, is {now}"
        if sys.version_info[:2] == PYTHON and was > 50:
            assert now >= was * LESS, f"{name}: {what} was {was}, is {now}: write it down"


def test_all_that_is_counted_is_written_down() -> None:
    assert list(recorded()) == list(OPERATIONS)
