"""How offered offsets, deliberate moves and what Java did come together."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from storage.configs.progress_table import NO_PROGRESS, ProgressTable, QueueProgress

KEY = "T@g"


def table_with(generation: int, offset: int | None) -> ProgressTable:
    table = ProgressTable()
    table.queues[KEY] = {0: QueueProgress(generation, offset)}
    return table


def test_progress_of_one_generation_never_goes_back():
    table = ProgressTable()
    assert table.commit(KEY, 0, QueueProgress(0, 7)) == (0, 7)
    table.changed = False
    assert table.commit(KEY, 0, QueueProgress(0, 5)) == (0, 7)
    assert table.commit(KEY, 0, QueueProgress(0, 7)) == (0, 7)
    assert not table.changed
    assert table.commit(KEY, 0, QueueProgress(0, 8)) == (0, 8)
    assert table.changed


def test_a_commit_that_does_not_know_of_the_move_is_dropped():
    table = table_with(0, 500)
    assert table.move(KEY, 0, 3) == (1, 3)
    assert table.commit(KEY, 0, QueueProgress(0, 501)) == (1, 3)
    assert table.commit(KEY, 0, QueueProgress(1, 4)) == (1, 4)


def test_deleted_progress_does_not_come_back():
    table = table_with(2, 500)
    assert table.move(KEY, 0, None) == (3, None)
    assert table.commit(KEY, 0, QueueProgress(2, 501)) == (3, None)
    assert table.offsets() == {}
    assert table.commit(KEY, 0, QueueProgress(3, 0)) == (3, 0)
    assert table.offsets() == {KEY: {0: 0}}


def test_a_newer_generation_wins_where_the_file_was_lost():
    table = table_with(0, 900)
    assert table.commit(KEY, 0, QueueProgress(4, 10)) == (4, 10)


def test_an_offer_without_an_offset_only_asks():
    table = table_with(1, 9)
    assert table.commit(KEY, 0, QueueProgress(5, None)) == (1, 9)
    assert not table.changed


def test_what_java_changed_is_taken_over_as_a_move():
    table = table_with(0, 10)
    table.exported = {KEY: {0: 10}}
    table.adopt({KEY: {0: 4, 1: 6}})
    assert table.get(KEY, 0) == (1, 4)
    assert table.get(KEY, 1) == (0, 6)
    assert table.exported == {KEY: {0: 4, 1: 6}}


def test_what_java_did_not_touch_stays_ours_though_it_was_never_exported():
    table = table_with(0, 12)  # killed after 12 was committed, before it was exported
    table.exported = {KEY: {0: 10}}
    table.queues["New@g"] = {0: QueueProgress(0, 5)}
    table.adopt({KEY: {0: 10}})
    assert table.get(KEY, 0) == (0, 12)
    assert table.get("New@g", 0) == (0, 5)


def test_what_java_deleted_is_deleted():
    table = table_with(0, 10)
    table.queues[KEY][1] = QueueProgress(2, 3)
    table.exported = {KEY: {0: 10, 1: 3}}
    table.adopt({KEY: {0: 10}})
    assert table.get(KEY, 1) == (3, None)
    assert table.offsets() == {KEY: {0: 10}}


def test_groups_without_queues_are_kept_as_java_writes_them():
    table = ProgressTable()
    table.adopt({"%RETRY%g@g": {}})
    assert table.offsets() == {"%RETRY%g@g": {}}


@given(
    st.dictionaries(
        st.sampled_from(["A@g", "B@g", "C@h"]),
        st.dictionaries(
            st.integers(0, 20),
            st.tuples(st.integers(0, 9), st.none() | st.integers(0, 1 << 62)),
        ),
    ),
    st.dictionaries(st.text(), st.dictionaries(st.integers(0, 9), st.integers(0, 99))),
    st.none() | st.integers(0, 1 << 62),
)
@pytest.mark.slow
def test_an_entry_reads_back_as_it_was(queues, exported, lock_mtime_ns):
    import json

    table = ProgressTable(lock_mtime_ns)
    for key, progresses in queues.items():
        table.queues[key] = {q: QueueProgress(*p) for q, p in progresses.items()}
    table.exported = exported
    again = ProgressTable.from_entry(json.loads(json.dumps(table.entry())))
    assert (again.queues, again.exported, again.lock_mtime_ns, again.changed) == (
        table.queues,
        exported,
        lock_mtime_ns,
        False,
    )


@given(st.lists(st.tuples(st.sampled_from("cm"), st.integers(0, 3), st.integers(0, 50))))
def test_any_history_keeps_generations_and_offsets_in_order(history):
    table = ProgressTable()
    before = NO_PROGRESS
    for what, generation, offset in history:
        if what == "c":
            table.commit(KEY, 0, QueueProgress(min(generation, before.generation), offset))
        else:
            table.move(KEY, 0, offset)
        now = table.get(KEY, 0)
        assert now.generation >= before.generation
        if now.generation == before.generation and before.offset is not None:
            assert now.offset is not None
            assert now.offset >= before.offset
        before = now
