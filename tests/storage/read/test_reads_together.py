"""An answer for several reads holds what these would hold, one after the other."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage.format.message import MessageExt
from storage.read.tag_filter import TagFilter
from storage.readonly import StoreView
from storage.results import MOST_BYTES_TOGETHER, GetMessageStatus
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.examples import examples
from tests.support.hand_made import HOST, TINY, HandMade

CONFIG = TINY.with_(
    mapped_file_size_commit_log=16384,
    mapped_file_size_consume_queue=1600,  # 80 units
    max_transfer_bytes_in_memory=6000,
)
BORN_V6 = 0x10
V6 = bytes(15) + b"\1" + HOST[4:]
USUAL, UNUSUAL, WRONG = range(3)

FORMS = pytest.mark.parametrize(
    "form", [None, pytest.param(compiled, marks=needs_compiled)], ids=["pure", "compiled"]
)


def made_of(bodies: list[int], kinds: list[int]) -> HandMade:
    """A queue of messages; those in another form are read one by one, wrong ones not at all."""
    made = HandMade(CONFIG)
    for size, kind in zip(bodies, kinds, strict=True):
        if kind == UNUSUAL:
            made.put(body=bytes(size), sys_flag=BORN_V6, born_host=V6)
        else:
            made.put(body=bytes(size))
        if kind == WRONG:
            made.log[made.messages[-1].commitlog_offset + 4] ^= 1  # of the magic
    return made


def known(message: MessageExt) -> tuple[int, int, bytes]:
    return message.queue_offset, message.commitlog_offset, message.body


def expect_reads(view: StoreView, offset: int, count: int, pulls: int) -> int:
    """Compare an answer for several reads with these; gives for how many it was."""
    together = view.get_message("T", 0, offset, count, pulls=pulls)
    messages = []
    for number in range(1, pulls + 1):
        alone = view.get_message("T", 0, offset, count)
        messages += alone.messages
        offset = alone.next_begin_offset
        if len(messages) == len(together.messages):
            assert together[:4] == alone[:4]
            assert [known(one) for one in together.messages] == [known(one) for one in messages]
            assert together.buffer_total_size == sum(one.store_size for one in messages)
            return number
        assert alone.status is GetMessageStatus.FOUND
        assert len(alone.messages) == min(count, 32), "the one before was not the last"
    raise AssertionError("it holds more than so many reads would")


@pytest.mark.slow
@FORMS
@settings(max_examples=examples(150, short=12), deadline=None)
@given(
    parts=st.lists(
        st.tuples(
            st.sampled_from([10, 100, 900]),
            st.sampled_from([USUAL, USUAL, USUAL, UNUSUAL, WRONG]),
            st.integers(1, 60),
        ),
        min_size=1,
        max_size=6,
    ),
    offset=st.integers(0, 100),
    count=st.integers(1, 40),
    pulls=st.integers(1, 16),
)
def test_it_is_what_reads_one_behind_the_other_hold(
    form: Any, parts: list[tuple[int, int, int]], offset: int, count: int, pulls: int
) -> None:
    bodies = [size for size, _, times in parts for _ in range(times)]
    kinds = [kind for _, kind, times in parts for _ in range(times)]
    made = made_of(bodies, kinds)
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        StoreView.open(made.write(Path(folder)), CONFIG) as view,
    ):
        patch.setattr(native, "compiled", form)
        expect_reads(view, min(offset, len(bodies) - 1), count, pulls)


def test_where_all_is_usual_it_is_for_as_many_as_may_be(tmp_path: Path) -> None:
    made = made_of([10] * 75, [USUAL] * 75)
    with StoreView.open(made.write(tmp_path), CONFIG) as view:
        assert expect_reads(view, 0, 8, 7) == 7
        assert expect_reads(view, 0, 8, 16) == 10, "to the end of the queue"
        assert expect_reads(view, 3, 8, 16) == 9


def test_it_ends_behind_a_mebibyte(tmp_path: Path) -> None:
    config = CONFIG.with_(
        mapped_file_size_commit_log=1 << 23,
        mapped_file_size_consume_queue=20_000,
        max_transfer_bytes_in_memory=1 << 18,
    )
    made = HandMade(config)
    for _ in range(300):
        made.put(body=bytes(6000))
    with StoreView.open(made.write(tmp_path), config) as view:
        result = view.get_message("T", 0, 0, 32, pulls=16)
        last = 32 * result.messages[0].store_size
    assert result.buffer_total_size - last <= MOST_BYTES_TOGETHER < result.buffer_total_size


@pytest.mark.parametrize("pulls", [1, 5])
def test_what_a_filter_passes_is_one_read(tmp_path: Path, pulls: int) -> None:
    made = HandMade(CONFIG)
    for number in range(60):
        made.put(tags="AB"[number % 2])
    with StoreView.open(made.write(tmp_path), CONFIG) as view:
        result = view.get_message("T", 0, 0, 8, tags=TagFilter.parse("A"), pulls=pulls)
    assert [message.queue_offset for message in result.messages] == list(range(0, 16, 2))
