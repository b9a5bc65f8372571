"""What a batch leaves that was killed, and that a later one removes nothing of others."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from analytics.sink.marker import BEGUN, DONE, Marker, MarkerFile
from analytics.sink.options import read_sink_options
from analytics.sink.writer import BatchWriter, Staged
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.readonly import StoreView
from tests.support.killed_sink import stored_bodies

SCHEMA = StructType([StructField("body", StringType()), StructField("topic", StringType())])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_store(tmp_path / "store", SMALL_STORE)
    return tmp_path / "store"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


def writer(root: Path, shared: Path | None = None, **options: str) -> BatchWriter:
    given = {"path": str(root), **options}
    if shared is not None:
        given["stagingLocation"] = str(shared)
    return BatchWriter(read_sink_options(given, stream=False), SCHEMA, overwrite=False)


def stage(one: BatchWriter, *bodies: str) -> Staged:
    """What a task of the batch does."""
    return one.write(iter([pa.record_batch({"body": bodies, "topic": ["A"] * len(bodies)})]))


def later(*folders: Path) -> None:
    """All that is there now was last changed long ago."""
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            os.utime(path, (0, 0))


def write(root: Path, shared: Path | None = None) -> None:
    one = writer(root, shared)
    one.commit([stage(one, "a row")])


def cut(root: Path, shared: Path | None = None, **options: str) -> None:
    """A batch that ends in the middle of its commit, as if its driver were killed there."""
    one = writer(root, shared, **options)
    staged = stage(one, "lost")
    assert staged.part is not None
    with StoreView.open(root) as view, MarkerFile(root, staged.write) as file:
        file.put(Marker(0, BEGUN, view.log_max_offset(), (staged.part,)))


def test_folders_of_others_in_the_staging_location_stay(root, shared):
    for name in ("backup-20261101", "rmqctl-sink-x-0123abcd", "x-0123abcd"):
        (shared / name / "below").mkdir(parents=True)
        (shared / name / "below" / "data").write_text("theirs")
    (shared / "empty-20261101").mkdir()
    later(shared)
    before = {path: path.stat().st_mtime for path in shared.rglob("*")}
    write(root, shared)
    assert {path: path.stat().st_mtime for path in shared.rglob("*")} == before


def test_files_of_others_in_a_folder_of_a_batch_stay(root, shared):
    stage(writer(root, shared), "lost")
    (folder,) = shared.iterdir()
    (folder / "notes").write_text("theirs")
    later(shared)
    write(root, shared)
    assert (folder / "notes").read_text() == "theirs"
    assert list(folder.glob("*.arrow")) == []


@pytest.mark.parametrize("is_shared", [False, True])
def test_rows_of_a_batch_that_was_killed_before_its_commit_are_removed(root, shared, is_shared):
    place = shared if is_shared else root / "rmqctl" / "sink"
    staging = shared if is_shared else None
    stage(writer(root, staging), "lost")
    stage(writer(root, staging, writeId="night"), "lost")
    later(place)
    new = stage(writer(root, staging), "of a batch that runs")
    write(root, staging)
    assert new.part is not None
    assert [*place.rglob("*.arrow")] == [Path(new.part.path)]
    assert len([*place.iterdir()]) == 1


def test_rows_of_another_store_stay_in_the_staging_location(root, shared, tmp_path):
    create_store(tmp_path / "other", SMALL_STORE)
    cut(root, shared, writeId="night")
    later(shared)
    write(tmp_path / "other", shared)
    one = writer(root, shared, writeId="night")
    one.commit([stage(one, "lost")])
    assert stored_bodies(root) == ["lost"]
    assert [*shared.rglob("*.arrow")] == []


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_batch_without_a_name_that_was_cut_is_forgotten_with_a_word(
    root, shared, is_shared, caplog
):
    staging = shared if is_shared else None
    cut(root, staging)
    write(root, staging)
    assert [*root.glob("rmqctl/sink/*.json")]
    assert "some or all of its" not in caplog.text
    later(root / "rmqctl" / "sink", shared)
    write(root, staging)
    assert [*(root / "rmqctl" / "sink").iterdir()] == []
    assert [*shared.iterdir()] == []
    assert "without writeId was killed while it was stored: some or all of its 1 row" in caplog.text


def test_a_batch_without_a_name_that_was_stored_is_forgotten_without_a_word(root, caplog):
    cut(root)
    (path,) = root.glob("rmqctl/sink/*.json")
    with MarkerFile(root, path.stem) as file:
        marker = file.read()
        assert marker is not None
        file.put(marker._replace(state=DONE))
    (path.parent / "once.0.lock").write_text("")  # of one that was killed before that
    later(path.parent)
    write(root)
    assert [*path.parent.iterdir()] == []
    assert "some or all of its" not in caplog.text


def test_a_batch_with_a_name_that_was_cut_waits_for_ever(root):
    cut(root, writeId="night")
    later(root / "rmqctl" / "sink")
    write(root)
    one = writer(root, writeId="night")
    one.commit([stage(one, "lost")])
    assert stored_bodies(root) == ["a row", "lost"]
