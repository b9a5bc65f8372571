"""Files that a killed Java broker had only begun to make."""

from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.store import MessageStore
from tests.support.samples import TINY, Sample, new_store, open_store, prepared


def _store_of_a_dead_java_broker(root: Path) -> Path:
    with open_store(new_store(root)) as store:
        store.put(prepared([Sample("kept", "T")]))
    (root / "abort").touch()
    (root / "lock").write_bytes(b"lock")
    return root


def test_an_empty_log_file_at_the_end_is_removed(tmp_path: Path) -> None:
    root = _store_of_a_dead_java_broker(tmp_path / "store")
    empty = root / "commitlog" / f"{TINY.mapped_file_size_commit_log:020}"
    empty.touch()
    with MessageStore.open(root) as store:
        assert store.recovery is not None
        assert store.recovery.notes == [f"{empty}: it is empty, removed"]
        assert not empty.exists()
        assert [message.body for message in store.view.get_message("T", 0, 0, 32).messages]


def test_an_empty_log_file_in_the_middle_is_damage(tmp_path: Path) -> None:
    root = _store_of_a_dead_java_broker(tmp_path / "store")
    size = TINY.mapped_file_size_commit_log
    empty = root / "commitlog" / f"{size:020}"
    empty.touch()
    (root / "commitlog" / f"{2 * size:020}").write_bytes(bytes(size))
    with pytest.raises(CorruptFileError, match=empty.name):
        MessageStore.open(root)
    assert empty.exists()


def test_an_empty_index_file_is_removed(tmp_path: Path) -> None:
    root = _store_of_a_dead_java_broker(tmp_path / "store")
    empty = root / "index" / "29991231235959999"
    empty.touch()
    with MessageStore.open(root) as store:
        assert not empty.exists()
        store.put(prepared([Sample("more", "T")]))
        assert [found.msg_id for found in store.view.find_unique("T", "kept")] == ["kept"]
        assert [found.msg_id for found in store.view.find_unique("T", "more")] == ["more"]


def test_an_empty_queue_file_is_made_whole(tmp_path: Path) -> None:
    root = _store_of_a_dead_java_broker(tmp_path / "store")
    empty = root / "consumequeue" / "T" / "0" / f"{TINY.mapped_file_size_consume_queue:020}"
    empty.touch()
    with MessageStore.open(root) as store:
        store.put(prepared([Sample(f"more{i}", "T") for i in range(5)]))
        assert store.view.max_offset_in_queue("T", 0) == 6
    sizes = {path.stat().st_size for path in empty.parent.iterdir()}
    assert sizes == {TINY.mapped_file_size_consume_queue}
