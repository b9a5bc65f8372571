"""Carving a queue whose end comes from a record with a damaged queue offset."""

import json
import shutil

import pytest

from storage.format.layout import QUEUE_OFFSET_POSITION
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.cli import run
from tests.support.hand_made import TINY
from tests.support.samples import Sample

COUNT = 50
CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=2000)


def store_with(root, number, queue_offset):
    """A store in which one record says that it has another queue offset, and whose writer, the
    first one after a Java broker, has taken the ends of queues from the log."""
    MessageStore.create(root, CONFIG)
    with MessageStore.open(root) as store:
        places = [
            int(store.put_message(Sample(f"m{n}", "T").inner()).commitlog_offsets[0])
            for n in range(COUNT)
        ]
    with (root / "commitlog" / f"{0:020}").open("r+b") as log:
        log.seek(places[number] + QUEUE_OFFSET_POSITION)
        log.write(queue_offset.to_bytes(8, "big"))
    shutil.rmtree(root / "rmqctl")
    assert run("produce", "Other", "-S", root, "-q", stdin=b"x\n").code == 0


@pytest.mark.parametrize(("number", "queue_offset"), [(10, 300), (40, 3), (0, 60), (49, 0)])
@pytest.mark.parametrize("mask", [(), ("--mask", "keys=hash")])
def test_messages_whose_places_contradict_each_other_are_lost_alone(
    tmp_path, number, queue_offset, mask
):
    root, out = tmp_path / "s", tmp_path / "out"
    store_with(root, number, queue_offset)
    line = ("store", "carve", out, "-S", root, "-t", "T", *mask, "--execute", "--yes", "-q")
    result = run(*line, "-o", "json")
    assert result.code in (0, 8), result.err
    (row,) = json.loads(result.out)
    assert row["messages"] >= COUNT - 2
    with StoreView.open(out) as view:
        assert fsck(view).healthy
