"""How many bytes of records one answer holds: exactly as many as the limit says, and no byte more.

The first message comes whatever its size. The compiled form and the pure one agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage.log.record_reader import QueueKey
from storage.read.tag_filter import TagFilter
from storage.readonly import StoreView
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.hand_made import TINY, HandMade

ROOMY = TINY.with_(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=100_000)
COUNT = 40
FORMS = [pytest.param(True, marks=needs_compiled, id="compiled"), pytest.param(False, id="pure")]


@contextmanager
def view_of(folder: Path, byte_limit: int) -> Iterator[tuple[StoreView, list[int]]]:
    """A queue of records of different sizes, and the sizes."""
    made = HandMade(ROOMY)
    sizes = [made.put("T", body=bytes(20 + number), tags="A").size for number in range(COUNT)]
    limits = {"max_transfer_bytes_in_memory": byte_limit, "max_transfer_count_in_memory": 1000}
    with StoreView.open(made.write(folder), ROOMY.with_(**limits)) as view:
        yield view, sizes


@pytest.fixture(params=FORMS, autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled if request.param else None)


@pytest.mark.parametrize("fitting", [1, 3, COUNT])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_run_ends_before_the_record_that_exceeds_the_limit(
    fitting: int, more: int, tmp_path: Path
) -> None:
    with view_of(tmp_path, 1 << 20) as (view, sizes):
        limit = sum(sizes[:fitting]) + more
        units = view.unit_bytes("T", 0, 0, COUNT)
        messages, total = view._records.read_run(units, QueueKey("T", 0), 0, COUNT, limit)
        expected = max(1, fitting - (more < 0))
        assert len(messages) == expected
        assert total == sum(sizes[:expected])


@pytest.mark.parametrize("tags", [None, TagFilter.parse("A")], ids=["all", "by tag"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_an_answer_holds_exactly_the_bytes_of_the_limit(
    tags: TagFilter | None, more: int, tmp_path: Path
) -> None:
    with view_of(tmp_path / "sizes", 1 << 20) as (_, sizes):
        limit = sum(sizes[:5]) + more
    with view_of(tmp_path / "s", limit) as (view, _):
        result = view.get_message("T", 0, 0, COUNT, tags=tags)
        assert len(result.messages) == (4 if more < 0 else 5)
        assert result.buffer_total_size == sum(sizes[: len(result.messages)])
        assert result.next_begin_offset == len(result.messages)


def test_the_first_message_comes_whatever_the_limit(tmp_path: Path) -> None:
    with view_of(tmp_path, 1) as (view, _):
        assert len(view.get_message("T", 0, 0, COUNT).messages) == 1
        assert len(view.get_message("T", 0, 0, COUNT, tags=TagFilter.parse("A")).messages) == 1


@pytest.mark.parametrize("asked", [10, COUNT], ids=["few", "many"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_piece_of_columns_ends_before_the_record_that_exceeds_the_limit(
    asked: int, more: int, tmp_path: Path
) -> None:
    with view_of(tmp_path, 1 << 20) as (view, sizes):
        found = view.read_column("T", 0, 0, asked, sum(sizes[:6]) + more)
        # What is left of the limit takes one more piece: its first message always fits.
        expected = {-1: 6, 0: 6, 1: 7}[more]
        assert len(found) == expected
        assert list(found.store_sizes) == sizes[:expected]
