"""Many rows as one text, and rows of several queues in one order."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rmqctl import native
from rmqctl.output import row_block
from rmqctl.output.row_block import RowBlock, RowText
from tests.support.compiled import needs_compiled

TEXTS = st.lists(st.binary(max_size=9), max_size=6)


@st.composite
def blocks(draw: Any) -> RowBlock:
    """A part of a block, perhaps with rows that are left out."""
    texts = draw(TEXTS)
    block = RowBlock.of(texts)
    if draw(st.booleans()):
        kept = bytes(draw(st.booleans()) for _ in texts)
        texts = [text if keep else b"" for text, keep in zip(texts, kept, strict=True)]
        ends = array("q", [0])
        for text in texts:
            ends.append(ends[-1] + len(text))
        block = RowBlock(bytearray(b"".join(texts)), ends, kept)
    first = draw(st.integers(0, len(texts)))
    return block[first : draw(st.integers(first, len(texts)))]


@given(TEXTS, st.integers(0, 7), st.integers(0, 7))
def test_a_block_is_a_sequence_of_rows(texts, first, last):
    block = RowBlock.of(texts)
    assert list(block) == texts
    assert list(block[first:last]) == texts[first:last]
    assert bytes(block[first:last].text) == b"".join(texts[first:last])
    assert len(block[first:last]) == block[first:last].kept == len(texts[first:last])
    assert list(block.upto(first)) == texts[:first]
    assert all(type(row) is RowText for row in block)
    with pytest.raises(IndexError):
        block[len(texts)]


@given(blocks(), st.integers(0, 7))
def test_rows_that_are_left_out_are_passed_and_not_counted(block, most):
    rows = list(block)
    assert block.kept == sum(row is not None for row in rows)
    assert bytes(block.text) == b"".join(row for row in rows if row is not None)
    part = block.upto(most)
    assert part.kept == min(most, block.kept)
    assert list(part) == rows[: len(part)]
    if most >= block.kept:
        assert block._kept is None or len(part) == len(block)
    else:
        assert not most or part[len(part) - 1] is not None


@given(blocks())
def test_some_rows_get_another_text(block):
    changed = {at: b"new" for at, row in enumerate(block) if row is not None and at % 2}
    wanted = [changed.get(at, row) for at, row in enumerate(block)]
    assert list(block.replaced(changed)) == wanted


@needs_compiled
@given(st.lists(blocks(), max_size=5), st.data())
def test_rows_of_queues_are_in_the_order_of_the_log(parts, data):
    places = [
        sorted(data.draw(st.lists(st.integers(0, 20), min_size=len(part), max_size=len(part))))
        for part in parts
    ]
    given_parts = [(array("q", each), part) for each, part in zip(places, parts, strict=True)]
    rows = sorted(
        (place, number, at) for number, each in enumerate(places) for at, place in enumerate(each)
    )
    merged, order = RowBlock.merged(given_parts)
    assert list(merged) == [parts[number][at] for _, number, at in rows]
    assert list(order) == [number for _, number, _ in rows]
    assert bytes(merged.text) == b"".join(
        row for row in (parts[number][at] for _, number, at in rows) if row is not None
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_block, "merged_rows", native.references["merged_rows"])
        again, same = RowBlock.merged(given_parts)
    assert (list(again), list(same)) == (list(merged), list(order))


@needs_compiled
@pytest.mark.parametrize(
    "part",
    [
        (bytes(16), b"ab", array("q", [0, 1]), 0, None),
        (bytes(8), b"ab", array("q", [0, 3]), 0, None),
        (bytes(8), b"ab", array("q", [2, 1]), 0, None),
        (bytes(8), b"ab", array("q", [-1, 1]), 0, None),
        (bytes(8), b"ab", array("q", [0, 1]), -1, None),
        (bytes(8), b"ab", array("q", [0, 1, 2]), 1, b"\1"),
    ],
)
def test_wrong_ends_are_refused(part):
    with pytest.raises(ValueError, match="wrong ends"):
        row_block.merged_rows((part,))


@needs_compiled
def test_too_many_queues_are_refused():
    part = (b"", b"", array("q", [0]), 0, None)
    with pytest.raises(ValueError, match="255"):
        row_block.merged_rows((part,) * 256)
