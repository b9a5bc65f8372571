"""A file of a consume queue that was cut short: what its end held is reported, and once."""

import pytest

from storage.store import MessageStore
from storage.tools.fsck import Code
from tests.support.hand_made import TINY
from tests.support.mended import held, repair, wrong
from tests.support.samples import Sample

CONFIG = TINY.with_(mapped_file_size_commit_log=16384, mapped_file_size_consume_queue=2000)


@pytest.fixture
def root(tmp_path):
    """50 messages in each of two queues, all in one file."""
    root = tmp_path / "s"
    MessageStore.create(root, CONFIG)
    with MessageStore.open(root) as store:
        for number in range(100):
            store.put_message(Sample(f"m{number}", "T", number % 2).inner())
    return root


@pytest.mark.parametrize(("length", "first"), [(0, 0), (777, 38), (760, 38)])
def test_what_went_with_the_end_of_a_queue_file_is_told(root, length, first):
    before = held(root)
    with (root / "consumequeue" / "T" / "0" / f"{0:020}").open("r+b") as file:
        file.truncate(length)
    (finding,) = wrong(root)
    assert finding.code is Code.QUEUE_FILE_LENGTH
    assert f"the file has {length} bytes" in finding.what
    assert f"T queue 0: offsets {first} to 49: the records have no unit" in finding.what
    assert "consumers do not get these messages" in finding.effect
    assert finding.fix == "rmqctl store rebuild queue -t T"
    repair(root)
    assert wrong(root) == []
    assert held(root) == before
