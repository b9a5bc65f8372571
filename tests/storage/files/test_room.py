"""A record goes into a file of the log if 8 bytes are left after it, for the blank record."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.format.encode import prepare
from storage.format.encode_column import prepare_column
from storage.format.prepared import PreparedRecords
from storage.readonly import StoreView
from storage.results import PutMessageStatus
from storage.tools.fsck import fsck
from tests.support.compiled import native
from tests.support.samples import HOST, SMALL, START_MS, Sample, Ticking, new_store, open_store

SIZE = 16 << 10
CONFIG = SMALL.with_(mapped_file_size_commit_log=SIZE)
"""All but the log's files is so large that nothing else ends a run of puts."""


def one(size: int = 100) -> Sample:
    return Sample("m-0", "T", size=size)


def length_of(sample: Sample) -> int:
    return len(prepare([sample.inner()]).buffer)


def many(count: int) -> PreparedRecords:
    return prepare_column(
        "T",
        [0] * count,
        [b"." * 100] * count,
        born_timestamp=START_MS,
        born_host=HOST,
        store_host=HOST,
        unique_ids=[b"%08d" % number for number in range(count)],
        keys=["k"] * count,
    )


@pytest.mark.conformance("A10")
@pytest.mark.parametrize("form", ["compiled", "pure"])
@pytest.mark.parametrize(("left", "stays"), [(9, True), (8, True), (7, False), (0, False)])
@pytest.mark.parametrize("count", [1, 3, 20], ids=["one", "three at once", "twenty at once"])
def test_the_last_records_of_a_file_leave_room_for_the_blank_record(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    left: int,
    stays: bool,
    count: int,
) -> None:
    """CommitLog.DefaultAppendMessageCallback; in a run of puts, with all that is known by then."""
    if form == "pure":
        monkeypatch.setattr(native, "compiled", None)
    last = length_of(one()) if count == 1 else len(many(count).buffer)
    root = new_store(tmp_path / "s", CONFIG)
    with open_store(root, CONFIG, clock=Ticking(step=0)) as store:
        for number in range(2):
            store.put(many(20 if number else 3), whole=True)
        while (filler := SIZE - store.log_end - last - left) > 3 * length_of(one()):
            store.put_message(one().inner())
        store.put_message(one(100 + filler - length_of(one())).inner())
        before = store.log_end
        assert before == SIZE - last - left
        if count == 1:
            result = store.put_message(one().inner())
        else:
            result = store.put(many(count), whole=True)
        assert result.commitlog_offsets[0] == (before if stays else SIZE)
        store.put_message(one().inner())
        assert store.log_end > SIZE
    with StoreView.open(root) as view:
        assert fsck(view).healthy


@pytest.mark.parametrize("form", ["compiled", "pure"])
@pytest.mark.parametrize("left", [9, 8, 7, 1, 0])
def test_a_batch_as_long_as_a_file_is_stored_in_one_or_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, left: int
) -> None:
    """What is to stay together is refused where no file has room for it and the blank record."""
    if form == "pure":
        monkeypatch.setattr(native, "compiled", None)
    each = length_of(one())
    count = (SIZE - left) // each
    samples = [one()] * (count - 1) + [one(100 + (SIZE - left) % each)]
    records = prepare([sample.inner() for sample in samples])
    assert len(records.buffer) == SIZE - left
    root = new_store(tmp_path / "s", CONFIG)
    with open_store(root, CONFIG, clock=Ticking(step=0)) as store:
        refused = store.put(records, whole=True).status is PutMessageStatus.MESSAGE_ILLEGAL
        assert refused == (left < 8)
        result = store.put(records)
        assert result.status is PutMessageStatus.PUT_OK
        assert len(result.commitlog_offsets) == count
    with StoreView.open(root) as view:
        assert fsck(view).healthy
        assert view.max_offset_in_queue("T", 0) == count * (1 if refused else 2)
