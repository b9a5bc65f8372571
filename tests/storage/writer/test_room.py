"""A record goes into a file of the log if 8 bytes are left behind it, for the blank record."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import native
from storage.readonly import StoreView
from storage.verify import fsck
from tests.support.samples import TINY, Sample, new_store, open_store, prepared

SIZE = TINY.mapped_file_size_commit_log
FORMS = pytest.mark.parametrize("form", ["compiled", "pure"])
LEFT = pytest.mark.parametrize(("left", "stays"), [(9, True), (8, True), (7, False), (0, False)])


def record_size(count: int) -> int:
    """Bytes of ``count`` records with a body of 100 bytes each, all of one length."""
    return len(prepared([Sample("m-0", "T", size=100)]).image) * count  # type: ignore[union-attr]


@pytest.mark.conformance("A10")
@FORMS
@LEFT
@pytest.mark.parametrize("count", [1, 3, 40], ids=["one", "three at once", "many at once"])
def test_the_last_records_of_a_file_leave_room_for_the_blank_record(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    left: int,
    stays: bool,
    count: int,
) -> None:
    if form == "pure":
        monkeypatch.setattr(native, "compiled", None)
    config = TINY.with_(mapped_file_size_commit_log=4 * SIZE if count > 3 else SIZE)
    file_size = config.mapped_file_size_commit_log
    last = record_size(count)
    with open_store(new_store(tmp_path / "s", config), config) as store:
        # One after the other, so that the writer knows its file as it does in a run.
        while file_size - store.log_end - last - left > 2 * record_size(1):
            store.put(prepared([Sample("m-0", "T", size=100)]))
        filler = file_size - store.log_end - last - left
        store.put(prepared([Sample("m-0", "T", size=100 + filler - record_size(1))]))
        before = store.log_end
        assert before == file_size - last - left
        samples = [Sample("m-0", "T", size=100) for _ in range(count)]
        result = store.put(prepared(samples), whole=True)
        assert result.commitlog_offsets[0] == (before if stays else file_size)
        store.put(prepared([Sample("m-0", "T", size=100)]))
    with StoreView.open(tmp_path / "s") as view:
        assert fsck(view).healthy
