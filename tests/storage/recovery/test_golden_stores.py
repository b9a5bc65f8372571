"""Opening a real broker's store for writing ends where RocketMQ ends, or keeps more."""

from pathlib import Path

import pytest

from storage.files.fs import FileSystem
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Severity, fsck
from tests.support import golden

KEPT_MORE = {
    "torn-bad-crc-middle-4.9": "one damaged body; whole records follow it",
    "torn-bad-crc-middle-5.3": "one damaged body; whole records follow it",
    "torn-no-blank-4.9": "a lost blank record; the next file begins with a record",
    "torn-clean-queue-missing-4.9": "the missing queue is rebuilt",
    "torn-clean-queue-missing-5.3": "the missing queue is rebuilt",
}
"""Stores of which we keep more messages than RocketMQ (FORMAT.md, damage and recovery)."""

PHANTOM = ("phantom-4.9", ("GoldenFull", 0))
"""An all-zero file after a full one: Java counts one message more, which is none."""


Pages = dict[int, bytes]


def pages_of(path: Path) -> Pages:
    """The pages of a file that are not all zero; holes are not read."""
    pages = {}
    fs = FileSystem()
    fd = fs.open(path, writable=False)
    try:
        for start, end in fs.data_ranges(fd, 0, fs.size(fd)):
            for position in range(start, end, 4096):
                shared = fs.read(fd, min(4096, end - position), position)
                if any(shared):
                    pages[position] = shared
    finally:
        fs.close(fd)
    return pages


def files_of(root: Path) -> dict[str, Pages]:
    """Java's files of a store, by name."""
    return {
        path.relative_to(root).as_posix(): pages_of(path)
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] != "rmqctl"
    }


@pytest.fixture(params=golden.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.slow
def test_recovery_keeps_every_message_that_rocketmq_keeps(name: str, tmp_path: Path) -> None:
    manifest = golden.manifest(name)
    root = golden.extract(name, tmp_path)

    with MessageStore.open(root) as store:
        view = store.view
        recovery = store.recovery
        assert recovery is not None
        bounds = {queue: view.max_offset_in_queue(*queue) for queue in view.queues()}
        for row in manifest["messages"]:
            found = view.get_message(row["topic"], row["queueId"], row["queueOffset"], 1)
            body_damaged = any("CRC" in note for note in recovery.notes)
            if not found.messages and body_damaged:
                continue
            assert found.messages, row
            assert found.messages[0].commitlog_offset == row["commitLogOffset"]
            assert found.messages[0].body_crc == row.get("bodyCRC", found.messages[0].body_crc)

    for row in manifest["queues"]:
        queue = (row["topic"], row["queueId"])
        ours, theirs = bounds.get(queue, 0), row["maxOffset"]
        if (name, queue) == PHANTOM:
            assert ours == theirs - 1
        elif name in KEPT_MORE:
            assert ours >= theirs
        else:
            assert ours == theirs, queue
    if name in KEPT_MORE:
        assert recovery.notes
        assert recovery.log_end >= manifest["maxPhyOffset"]
        known = {(row["topic"], row["queueId"]): row["maxOffset"] for row in manifest["queues"]}
        assert sum(bounds.values()) > sum(known.values())
    else:
        assert recovery.log_end == manifest["maxPhyOffset"]


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in golden.names()
        if golden.manifest(name)["cleanShutdown"] and not name.startswith("torn")
    ],
)
@pytest.mark.slow
def test_opening_and_closing_a_clean_store_changes_nothing_of_javas(
    name: str, tmp_path: Path
) -> None:
    root = golden.extract(name, tmp_path)
    before = files_of(root)

    with MessageStore.open(root):
        pass

    after = files_of(root)
    # The checkpoint may move to the last record: 4.9 sometimes leaves it at an older one.
    differing = {path for path in before if before[path] != after.get(path)}
    assert differing <= {"checkpoint"}
    assert set(after) - set(before) == set()


def test_a_second_opening_trusts_the_page_and_recovers_nothing(tmp_path: Path) -> None:
    root = golden.extract("unclean-4.9", tmp_path)
    with MessageStore.open(root) as first:
        assert first.recovery is not None
        assert first.recovery.records == 260

    with MessageStore.open(root) as second:
        assert second.recovery is None


def test_a_killed_java_brokers_index_is_kept_to_the_byte(tmp_path: Path) -> None:
    root = golden.extract("unclean-4.9", tmp_path)
    before = {path: data for path, data in files_of(root).items() if path.startswith("index/")}

    with MessageStore.open(root):
        pass

    after = {path: data for path, data in files_of(root).items() if path.startswith("index/")}
    assert after == before


def test_keys_that_rocketmq_would_lose_with_the_index_are_found_again(tmp_path: Path) -> None:
    manifest = golden.manifest("torn-no-index-4.9")
    root = golden.extract("torn-no-index-4.9", tmp_path)

    with MessageStore.open(root):
        pass

    with StoreView.open(root) as view:
        keys = 0
        for row in manifest["messages"]:
            found = view.get_message(row["topic"], row["queueId"], row["queueOffset"], 1)
            for key in found.messages[0].index_keys:
                hits = view.query_message(row["topic"], key, 64, 0, 1 << 62).messages
                assert row["commitLogOffset"] in [hit.commitlog_offset for hit in hits]
                keys += 1
        assert keys > 500


DAMAGE_THAT_STAYS = {
    "torn-bad-crc-middle-4.9": {"RECORD_DAMAGED"},
    "torn-bad-crc-middle-5.3": {"RECORD_DAMAGED"},
    "torn-bad-properties-4.9": {"PROPERTIES_DAMAGED"},  # no checksum: kept by Java
}


@pytest.mark.parametrize(
    "name", [name for name in golden.names() if name.startswith(("torn-", "unclean-"))]
)
def test_after_recovery_fsck_finds_nothing_but_damage_that_stays(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    with MessageStore.open(root):
        pass
    with StoreView.open(root) as view:
        found = fsck(view).findings
    wrong = {str(finding.code) for finding in found if finding.severity is not Severity.INFO}
    assert wrong == DAMAGE_THAT_STAYS.get(name, set()), found
