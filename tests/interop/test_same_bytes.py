"""Given the same messages at the same times, our store and Java's write the same files."""

from itertools import groupby
from pathlib import Path

import pytest

from storage.format.check import CheckKind, check_record
from storage.format.encode import MessageInner, prepare
from storage.format.message import MessageExt
from storage.format.properties import encode_properties, parse_properties
from storage.format.record import decode_record
from storage.results import PutMessageStatus
from storage.store import MessageStore
from tests.interop.samples import SMALL_FILES, Sample, our_config, samples, special_samples
from tests.interop.store_probe import Settings, StoreProbe

pytestmark = pytest.mark.interop

_MIDDLE_FILES: Settings = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 6000,
    "maxHashSlotNum": 500,
    "maxIndexNum": 2000,
}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(SMALL_FILES, id="small"),
        pytest.param(_MIDDLE_FILES, id="middle", marks=pytest.mark.long),
    ],
)
def test_our_files_are_those_that_java_writes(
    settings: Settings, probe49: StoreProbe, tmp_path: Path
) -> None:
    written = samples(200) + special_samples(first=200) + samples(100, first=300)
    java, ours = tmp_path / "java", tmp_path / "ours"
    with probe49.opened(java, settings) as store:
        store.append([sample.java_message() for sample in written])

    records = _records(java)
    assert len(records) == len(written)
    clock = _Clock()
    MessageStore.create(ours, our_config(settings))
    with MessageStore.open(ours, clock=clock) as store:
        pairs = zip(written, records, strict=True)
        for clock.now, group in groupby(pairs, lambda pair: pair[1].store_timestamp):
            result = store.put(prepare([_as_java_ordered(*pair) for pair in group]))
            assert result.status is PutMessageStatus.PUT_OK

    for folder in ("commitlog", "consumequeue"):
        assert _files(ours / folder) == _files(java / folder), folder
    # An index file is named after the clock of its making; their order is the same.
    assert _contents(ours / "index") == _contents(java / "index")


class _Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


def _as_java_ordered(sample: Sample, stored: MessageExt) -> MessageInner:
    """Make the message from the sample, with its properties in the order of Java's hash map."""
    inner = sample.inner()
    properties = parse_properties(inner.properties)
    order = list(parse_properties(stored.property_bytes))
    assert sorted(order) == sorted(properties)
    return inner._replace(properties=encode_properties({name: properties[name] for name in order}))


def _records(root: Path) -> list[MessageExt]:
    found = []
    for path in sorted((root / "commitlog").iterdir()):
        image = path.read_bytes()
        position = 0
        while (record := check_record(image, position, len(image))).kind is CheckKind.MESSAGE:
            found.append(decode_record(image, position, record.size))
            position += record.size
    return found


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]
