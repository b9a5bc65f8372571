"""A store whose folders lie on several file systems is read, and not written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import CorruptFileError, StoreNotWritableError
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.names import file_name
from storage.readonly import StoreView
from storage.results import PutMessageStatus
from storage.store import MessageStore
from tests.support.samples import SMALL, TINY, Sample, batch, new_store, open_store, prepared

_FOLDERS = (Path("/dev/shm"), Path("/tmp"), Path(__file__).parent)


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    here = tmp_path.stat().st_dev
    others = (p for p in _FOLDERS if p.is_dir() and os.access(p, os.W_OK))
    place = next((p for p in others if p.stat().st_dev != here), None)
    if place is None:
        pytest.skip("needs a file system other than that of temporary files")
    folder = Path(tempfile.mkdtemp(dir=place))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["commitlog", "consumequeue", "index"])
def test_a_folder_on_another_file_system_is_read_and_not_written(
    tmp_path: Path, other_disk: Path, name: str
) -> None:
    """New files are renamed from ``rmqctl/``: the first one would fail, in the midst of an
    append."""
    root = new_store(tmp_path / "s", SMALL)
    with open_store(root, SMALL) as store:
        store.put(prepared((Sample("one", "T", 0, keys=("key",)),)))
    shutil.move(root / name, other_disk / name)
    (root / name).symlink_to(other_disk / name)
    with pytest.raises(StoreNotWritableError, match=f"folder {name} is on another file system"):
        MessageStore.open(root)
    with StoreView.open(root) as view:
        assert len(view.get_message("T", 0, 0, 32).messages) == 1


def test_a_folder_that_is_a_link_on_the_same_file_system_is_written(tmp_path: Path) -> None:
    root = new_store(tmp_path / "s", SMALL)
    (root / "commitlog").rename(tmp_path / "log")
    (root / "commitlog").symlink_to(tmp_path / "log")
    with open_store(root, SMALL) as store:
        store.put(prepared((Sample("one", "T", 0),)))
    assert [*(tmp_path / "log").iterdir()]


@pytest.mark.parametrize("level", ["topic", "queue"])
@pytest.mark.parametrize("there", [True, False], ids=["mounted", "away"])
def test_a_topic_on_another_file_system_is_refused_and_others_go_on(
    tmp_path: Path, other_disk: Path, level: str, there: bool
) -> None:
    """Before, the record was in the log when the file of the queue could not be made, and no
    process could write anything any more."""
    root = new_store(tmp_path / "s", TINY)
    full = TINY.mapped_file_size_consume_queue // CQ_STORE_UNIT_SIZE
    with open_store(root, TINY) as store:
        store.put(prepared(batch("big", full, "Big")))
    folder = root / "consumequeue" / "Big" / ("0" if level == "queue" else "")
    shutil.move(folder, other_disk / "away")
    folder.symlink_to(other_disk / "away")
    if not there:
        (other_disk / "away").rename(other_disk / "not mounted")
    with open_store(root, TINY) as store:
        end = store.log_end
        for topic, queue_id in (("Big", 0), ("Big", 1)) if level == "topic" else (("Big", 0),):
            with pytest.raises(StoreNotWritableError, match="another file system|link to none"):
                store.put(prepared([Sample("more", topic, queue_id)]))
        assert store.log_end == end
        assert store.put(prepared([Sample("other", "Other", 0)])).status is PutMessageStatus.PUT_OK
    with open_store(root, TINY) as store:
        assert store.put(prepared([Sample("other", "Other", 0)])).status is PutMessageStatus.PUT_OK


@pytest.mark.parametrize("what", ["next file", "zeros of the last file", "folder"])
def test_a_queue_file_of_another_length_refuses_its_queue_and_others_go_on(
    tmp_path: Path, what: str
) -> None:
    root = new_store(tmp_path / "s", TINY)
    size = TINY.mapped_file_size_consume_queue
    full = size // CQ_STORE_UNIT_SIZE
    count = full - 2 if what == "zeros of the last file" else full
    with open_store(root, TINY) as store:
        store.put(prepared(batch("big", count, "Big")))
    folder = root / "consumequeue" / "Big" / "0"
    if what == "zeros of the last file":
        os.truncate(folder / file_name(0), size - 10)
    elif what == "folder":
        (folder / file_name(size)).mkdir()
    else:
        (folder / file_name(size)).write_bytes(bytes(10))
    with open_store(root, TINY) as store:
        end = store.log_end
        with pytest.raises(CorruptFileError, match="length"):
            store.put(prepared([Sample("more", "Big", 0)]))
        assert store.log_end == end
        assert store.put(prepared([Sample("other", "Other", 0)])).status is PutMessageStatus.PUT_OK
    (root / "rmqctl" / "shared").unlink()
    with open_store(root, TINY) as store:
        assert store.put(prepared([Sample("more", "Big", 0)])).queue_offsets[0] == count
