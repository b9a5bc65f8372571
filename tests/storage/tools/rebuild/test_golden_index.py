"""The key index of real brokers, damaged or lost, is rebuilt and answers the same."""

from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.coordination.exclusive import alone
from storage.files.fs import FileSystem
from storage.format.index_file import INDEX_HEADER_SIZE
from storage.format.names import INDEX
from storage.readonly import StoreView
from storage.tools.quarantine import Quarantine
from storage.tools.rebuild.index import RebuiltIndexFile, plan_index, rebuild_index
from storage.tools.rebuild.replacement import put_index_in_place, staging, unclean
from tests.support import golden
from tests.support.golden_differences import allowed
from tests.support.samples import START_MS

TORN_END = {
    "torn-bad-crc-last-4.9",
    "torn-clean-bad-crc-last-4.9",
    "torn-cq-past-end-4.9",
    "torn-half-record-4.9",
    "torn-half-record-5.3",
}
"""Keys of records that are no more: the last file gets shorter."""
LOST = {"torn-no-index-4.9"}
SAME = [name for name in golden.names() if name not in TORN_END | LOST]


def config_of(name: str) -> StoreConfig:
    """The lengths that a broker had: without a file they are unknown."""
    settings = golden.manifest(name)["settings"]
    config = StoreConfig()
    if "maxHashSlotNum" in settings:
        config = config.with_(
            max_hash_slot_num=int(settings["maxHashSlotNum"]),
            max_index_num=int(settings["maxIndexNum"]),
        )
    return config


def rebuild(root: Path, config: StoreConfig | None = None) -> list[RebuiltIndexFile]:
    fs = FileSystem()
    with alone(root), StoreView.open(root, config) as view, staging(root, fs) as made:
        files = rebuild_index(view, made)
        with unclean(root, fs):
            return list(put_index_in_place(view, made, files, Quarantine(root, START_MS)))


def contents(root: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((root / INDEX).iterdir())]


@pytest.mark.parametrize("name", SAME)
def test_a_healthy_index_has_nothing_to_rebuild(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        files = plan_index(view)
    assert files
    assert [file for file in files if not file.is_same] == []


@pytest.mark.parametrize("name", ["small-files-4.9", "unclean-5.3", "retention-5.3"])
def test_damaged_files_come_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    before = {path.name: path.read_bytes() for path in (root / INDEX).iterdir()}
    for path in (root / INDEX).iterdir():
        data = bytearray(before[path.name])
        data[INDEX_HEADER_SIZE : INDEX_HEADER_SIZE + 60] = b"\xa5" * 60  # 15 of 100 slots
        path.write_bytes(data)
    done = rebuild(root)
    assert [file.name for file in done] == sorted(before)
    assert {path.name: path.read_bytes() for path in (root / INDEX).iterdir()} == before
    (run,) = (root / "rmqctl" / "quarantine").iterdir()
    assert len(list((run / INDEX).iterdir())) == len(before)


@pytest.mark.conformance("A15")
@pytest.mark.parametrize("name", ["small-files-4.9", "unclean-4.9", "time-4.9", "ipv6-4.9"])
def test_lost_files_come_back_with_the_same_content(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    before = contents(root)
    for path in (root / INDEX).iterdir():
        path.unlink()
    rebuild(root, config_of(name))
    assert contents(root) == before


@pytest.mark.parametrize(
    "name", ["small-files-4.9", "retention-4.9", "basic-5.3", "transaction-4.9"]
)
def test_rebuilt_files_answer_what_rocketmq_answers(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    for number, path in enumerate(sorted((root / INDEX).iterdir())):
        # Times of keys are whole seconds from the first one of a file. Where that is a message
        # that the log has deleted, only the first file shows it.
        if number or not name.startswith("retention"):
            path.unlink()
    rebuild(root, config_of(name))
    rows = golden.manifest(name)["queryByKey"]
    assert len(rows) > 3
    with StoreView.open(root) as view:
        for row in rows:
            if allowed(name, "query", row):
                continue
            found = view.query_message(
                row["topic"], row["key"], row["maxNum"], row["begin"], row["end"]
            )
            offsets = [message.commitlog_offset for message in found.messages]
            assert offsets == row["commitLogOffsets"], row


@pytest.mark.slow
def test_every_key_of_the_log_is_found(tmp_path: Path) -> None:
    root = golden.extract("torn-no-index-4.9", tmp_path)
    rebuild(root, config_of("torn-no-index-4.9"))
    keys = 0
    with StoreView.open(root) as view:
        for row in golden.manifest("torn-no-index-4.9")["messages"]:
            found = view.get_message(row["topic"], row["queueId"], row["queueOffset"], 1)
            for key in found.messages[0].index_keys:
                assert row["commitLogOffset"] in view.key_offsets(row["topic"], key)
                keys += 1
    assert keys > 500


@pytest.mark.parametrize("name", sorted(TORN_END))
def test_keys_of_records_that_are_no_more_go(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    (done,) = rebuild(root)
    assert done.keys_before is not None
    assert done.keys_after is not None
    assert done.keys_after < done.keys_before
    with StoreView.open(root) as view:
        assert all(file.is_same for file in plan_index(view))


def test_a_file_of_another_store_is_taken_away(tmp_path: Path) -> None:
    root = golden.extract("small-files-4.9", tmp_path)
    before = contents(root)
    other = min((golden.store("retention-4.9") / INDEX).iterdir())
    (root / INDEX / "20991231235959999").write_bytes(other.read_bytes())
    (done,) = rebuild(root)
    assert (done.name, done.keys_after) == ("20991231235959999", None)
    assert contents(root) == before
