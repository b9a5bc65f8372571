"""A folder that is filled on demand: readers get what is stored; what they look at is fetched."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.errors import ObjectStoreError
from analytics.object_store.objects import Objects
from analytics.object_store.steady import run, steadily
from analytics.object_store.store_copy import StoreCopy
from storage.files.read_files import MapBudget, ReadOnlyFiles
from tests.support.linux_forms import needs_linux_forms
from tests.support.s3_server import S3Server, refused, serving

pytestmark = needs_linux_forms
ROOT = Path(__file__).resolve().parents[3]
SIZE = 8 << 20
LOG = "commitlog/00000000000000000000"
LEFT_OUT = (
    *("rmqctl/shared", "rmqctl/x.lock", "index/20260101000000000"),
    *("rmqctl/rebuilt/A/0/00000000000000000000", "rmqctl/.new-index.0123456789abcdef.tmp"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Of a file whose first 8 bytes say where the next 8 bytes are, and so on, and other files."""
    root = tmp_path_factory.mktemp("stores") / "st"
    rng = random.Random(1)
    data = bytearray(b"\xff" * SIZE)
    at = 0
    for place in [*(rng.randrange(8, SIZE - 8) for _ in range(30)), 0]:
        data[at : at + 8] = place.to_bytes(8, "big")
        at = place
    for name in ("config/topics.json", "rmqctl/store.json", "rmqctl/samples/1", "abort"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}")
    for name in (*LEFT_OUT, "other/file"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("content")
    (root / "commitlog").mkdir()
    (root / LOG).write_bytes(data)
    with serving({"st": root}) as server:
        yield server


@pytest.fixture
def copy(server: S3Server) -> Iterator[StoreCopy]:
    server.asked.clear()
    objects = Objects(server.address("st"))
    with StoreCopy(objects, objects.listed()) as copy:
        yield copy


def hops(folder: Path, most: int = 100) -> Iterator[int]:
    """Follow the places in the log's file."""
    file = ReadOnlyFiles(MapBudget(), f"{folder}/commitlog", SIZE).at(0)
    assert file is not None
    at = 0
    for _ in range(most):
        at = int.from_bytes(file.view[at : at + 8], "big")
        if at > SIZE - 8:
            raise ValueError(f"{folder}: a place past the end")
        yield at
        if not at:
            return


@pytest.mark.slow
def test_a_reader_that_goes_from_place_to_place_gets_what_is_stored(
    server: S3Server, copy: StoreCopy
) -> None:
    expected = list(hops(server.stores["st"]))
    assert len(expected) == 31
    assert run([copy], lambda: list(hops(copy.root))) == expected
    assert server.bytes_of("commitlog") < SIZE // 4
    copy.drop()
    assert list(steadily([copy], lambda: hops(copy.root))) == expected


@pytest.mark.slow
def test_what_it_says_on_the_way_counts_once(
    copy: StoreCopy, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> int:
        count = len(list(hops(copy.root)))
        warnings.warn(f"{copy.root}: {count}", UserWarning, stacklevel=1)
        logging.getLogger("rmqctl.datasource").warning("%s: %d hops", copy.root, count)
        return count

    with pytest.warns(UserWarning, match="31") as warned:
        assert run([copy], read) == 31
    assert [str(one.message) for one in warned] == ["s3://bucket/st: 31"]
    assert [record.getMessage() for record in caplog.records] == ["s3://bucket/st: 31 hops"]


@pytest.mark.slow
def test_what_is_said_of_each_item_counts_once(
    copy: StoreCopy, caplog: pytest.LogCaptureFixture
) -> None:
    def read() -> Iterator[int]:
        for number, at in enumerate(hops(copy.root)):
            logging.getLogger("rmqctl.datasource").warning("hop %d", number)
            yield at

    assert len(list(steadily([copy], read))) == 31
    said = [record.getMessage() for record in caplog.records]
    assert said == [f"hop {number}" for number in range(31)]


@pytest.mark.slow
def test_an_error_counts_when_all_was_there(server: S3Server, copy: StoreCopy) -> None:
    def read() -> None:
        for at in hops(copy.root):
            if not at:
                raise ValueError("the end")

    with pytest.raises(ValueError, match="the end"):
        run([copy], read)
    assert len(server.ranges("commitlog")) > 5


def test_the_folder_has_all_names_and_the_small_files(server: S3Server, copy: StoreCopy) -> None:
    root = server.stores["st"]
    found = {str(path.relative_to(copy.root)): path for path in copy.root.rglob("*")}
    files = {name for name, path in found.items() if path.is_file()}
    assert files == {
        *("config/topics.json", "rmqctl/store.json", "rmqctl/samples/1", "abort"),
        *(LOG, "other/file"),
    }
    for name in files:
        here, there = found[name].stat(), (root / name).stat()
        assert (here.st_size, int(here.st_mtime)) == (there.st_size, int(there.st_mtime))
    for name in ("config/topics.json", "abort"):
        assert found[name].read_text() == f"text of {name}"
    assert found[LOG].stat().st_blocks == 0


def test_too_many_bytes_at_once_end_with_a_sentence(server: S3Server) -> None:
    objects = Objects(server.address("st"))
    with StoreCopy(objects, objects.listed(), most_bytes=1 << 20) as copy:

        def read_all() -> int:
            file = ReadOnlyFiles(MapBudget(), f"{copy.root}/commitlog", SIZE).at(0)
            assert file is not None
            return sum(file.view[::4096])

        with pytest.raises(ObjectStoreError, match=r"^s3://bucket/st: 8 MiB of the log and the"):
            run([copy], read_all)


def test_nothing_is_left_in_the_temporary_folder(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    objects = Objects(server.address("st"))
    with StoreCopy(objects, objects.listed()):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    server.answers["topics.json"] = refused
    try:
        with pytest.raises(ObjectStoreError, match="ACCESS_DENIED"):
            StoreCopy(Objects(server.address("st")), objects.listed())
    finally:
        server.answers.clear()
    assert list(tmp_path.iterdir()) == []


_WITHOUT_LINUX = """
from analytics.errors import ObjectStoreError
from analytics.object_store.objects import Objects
from analytics.object_store.store_copy import StoreCopy
try:
    StoreCopy(Objects("s3://bucket/st?region=us-east-1"), {})
except ObjectStoreError as error:
    print(error)
"""


@pytest.mark.slow
def test_where_pages_do_not_show_what_was_read_a_copy_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_LINUX],
        env={**os.environ, "PYTHONPATH": str(ROOT), "RMQCTL_POSIX": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("s3://bucket/st: this system (no Linux")
    assert "copy the store, or a snapshot of it, into a folder" in done.stdout
