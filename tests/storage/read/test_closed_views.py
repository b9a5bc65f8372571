"""Closing a view releases its files at once, even while the view and its results are held."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from storage.as_of import AsOfView
from storage.format.names import COMMITLOG, CONSUMEQUEUE, CONSUMEQUEUE_EXT, INDEX
from storage.read.tag_filter import TagFilter
from storage.readonly import FOREVER, StoreView
from tests.support import golden
from tests.support.samples import SMALL, Sample, new_store, open_store, prepared

OPEN_FILES = Path("/proc/self/fd")


def open_parts(root: Path) -> set[str]:
    """Parts of a store that this process holds open; a map holds the file it maps."""
    links = (path.readlink() for path in OPEN_FILES.iterdir() if path.is_symlink())
    return {link.relative_to(root).parts[0] for link in links if link.is_relative_to(root)}


def read_everything(view: StoreView) -> list[bytes]:
    """Use each kind of files: log, queues, ext files, index."""
    bodies = []
    for topic, queue_id in view.queues():
        first = view.min_offset_in_queue(topic, queue_id)
        for tags in (None, TagFilter.parse("TagA || TagB")):
            found = view.get_message(topic, queue_id, first, 32, tags=tags)
            bodies += [message.body for message in found.messages]
        view.query_message(topic, "k1", 1)
    return bodies


@pytest.mark.parametrize("name", ["basic-4.9", "cqext-4.9", "unclean-5.3"])
def test_a_closed_view_of_a_broker_s_store_holds_no_file(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    view = StoreView.open(root)
    assert read_everything(view)
    wanted = {COMMITLOG, CONSUMEQUEUE, INDEX}
    assert open_parts(root) == wanted | ({CONSUMEQUEUE_EXT} if "cqext" in name else set())
    view.close()
    assert open_parts(root) == set()
    view.close()


@pytest.mark.slow
def test_a_closed_view_of_our_store_holds_no_file(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    samples = [Sample(f"id-{n}", "T", keys=("k1",)) for n in range(50)]
    with open_store(root, SMALL) as store:
        store.put(prepared(samples))
    del store
    gc.collect()  # the shared state of the writer
    assert open_parts(root) == set()
    for past in (False, True):
        view = AsOfView.open_at(root, FOREVER) if past else StoreView.open(root)
        assert len(read_everything(view)) == 32
        assert open_parts(root) >= {COMMITLOG, CONSUMEQUEUE}
        view.close()
        assert open_parts(root) == set()
