"""A power loss never takes the delivery back before an ended delay that is forgotten."""

from storage.configs.delay_offsets import DelayOffsetFile, load_delay_offsets
from storage.configs.early_deliveries import EarlyDeliveries
from tests.support.durable_fs import DurableFileSystem
from tests.support.samples import new_store


def test_an_entry_is_dropped_when_the_device_has_the_offset_past_it(tmp_path):
    root = new_store(tmp_path / "store")
    file = DelayOffsetFile(root)
    file.write({3: 1})
    fs = DurableFileSystem(root)
    ended = EarlyDeliveries(root, fs)
    ended.add({2: [(1, 100)]})
    file.write({3: 2})  # over the old numbers; synced later
    ended.add({2: [(5, 500)]})
    after = fs.buffer(tmp_path / "after")
    assert load_delay_offsets(after)[3] == 2 or EarlyDeliveries(after).has(2, 1, 100)
    file.close()
    fs.forget()
