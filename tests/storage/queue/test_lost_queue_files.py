"""A queue that has lost its files, and a first unit that looks like a filler but for its tag."""

import pytest

from storage.errors import IncompleteStoreWarning
from storage.format.cq_unit import CQ_STORE_UNIT, PRE_BLANK_SIZE
from storage.readonly import StoreView
from tests.support.samples import batch, new_store, open_store, prepared


@pytest.fixture
def root(tmp_path):
    root = new_store(tmp_path / "store")
    with open_store(root) as store:
        for sample in batch("m", 20, "A", (0, 1)):
            store.put(prepared([sample]))
    return root


def test_a_queue_without_files_is_reported_once_a_view(root):
    for path in (root / "consumequeue/A/0").iterdir():
        path.unlink()
    with StoreView.open(root) as view:
        assert view.queue_bounds("A", 1) == (0, 10)
        with pytest.warns(IncompleteStoreWarning, match="queue 0 of A has no file"):
            first, end = view.queue_bounds("A", 0)
        assert (first > 0, end) == (True, 10)
        assert view.queue_bounds("A", 0) == (first, end), "the second time without a warning"


def test_a_queue_that_never_had_a_message_is_not_reported(root):
    (root / "consumequeue/A/7").mkdir()
    with StoreView.open(root) as view:
        assert view.queue_bounds("A", 7) == (0, 0)


@pytest.mark.parametrize(("tags", "first"), [(5, 0), (0, 1)])
def test_a_filler_is_one_in_all_its_bytes(root, tags, first):
    path = min((root / "consumequeue/A/0").iterdir())
    with path.open("r+b") as file:
        file.write(CQ_STORE_UNIT.pack(0, PRE_BLANK_SIZE, tags))
    with StoreView.open(root) as view:
        assert view.queue_bounds("A", 0) == (first, 10)


def test_a_negative_log_offset_is_no_sign_of_deletion(root):
    path = min((root / "consumequeue/A/0").iterdir())
    with path.open("r+b") as file:
        file.write(CQ_STORE_UNIT.pack(-5, 100, 0))
    with StoreView.open(root) as view:
        assert view.queue_bounds("A", 0) == (0, 10)
