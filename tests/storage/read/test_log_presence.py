"""A log whose last files are not there is no shorter log: writers refuse, readers say so."""

from __future__ import annotations

import hashlib
import re
import shutil
import struct
import warnings
from pathlib import Path

import pytest

from storage.errors import CorruptFileError, IncompleteStoreWarning, UnsupportedStoreError
from storage.format.names import file_name
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.samples import TINY, batch, new_store, open_store, prepared

FILE = TINY.mapped_file_size_commit_log
OFTEN = 10


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A closed store of three log files or more, whose shared state cannot be trusted."""
    root = new_store(tmp_path / "s")
    with open_store(root) as store:
        for number in range(OFTEN):
            store.put(prepared(batch(f"m{number}", 5, "A", (0, 1), size=300)))
    assert len(list((root / "commitlog").iterdir())) >= 3
    (root / "rmqctl" / "shared").unlink()
    return root


def logs(root: Path) -> list[Path]:
    return sorted((root / "commitlog").iterdir())


def java_files(root: Path) -> dict[str, str]:
    """What a Java broker would see of the store."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "rmqctl" not in path.parts and path.name != "lock"
    }


def takes_away_the_last(root: Path) -> None:
    logs(root)[-1].unlink()


def empties_the_last(root: Path) -> None:
    logs(root)[-1].write_bytes(b"")


def keeps_the_first_alone(root: Path) -> None:
    for path in logs(root)[1:]:
        path.unlink()


def moves_all(root: Path) -> None:
    shutil.move(root / "commitlog", root.parent / "elsewhere")


LOSSES = [takes_away_the_last, empties_the_last, keeps_the_first_alone, moves_all]


@pytest.fixture(params=["closed", "died"])
def exit_of(request: pytest.FixtureRequest, root: Path) -> Path:
    if request.param == "died":
        (root / "abort").touch()
    return root


@pytest.mark.parametrize("lose", LOSSES)
def test_a_writer_refuses_before_it_changes_anything(exit_of: Path, lose) -> None:
    root = exit_of
    lose(root)
    before = java_files(root)
    with pytest.raises(CorruptFileError, match="storePathCommitLog.*store repair") as raised:
        open_store(root)
    assert raised.value.position % FILE == 0
    assert java_files(root) == before


@pytest.mark.parametrize("lose", LOSSES)
def test_a_reader_warns_and_shows_the_rest(exit_of: Path, lose) -> None:
    root = exit_of
    lose(root)
    with StoreView.open(root) as view, pytest.warns(IncompleteStoreWarning, match="another folder"):
        left = sum(view.max_offset_in_queue("A", queue) for queue in (0, 1))
    assert left < 5 * OFTEN
    assert (left == 0) == (not logs(root) if (root / "commitlog").exists() else True)


@pytest.mark.parametrize("lose", LOSSES)
def test_what_comes_back_is_as_if_it_had_never_been_away(root: Path, lose) -> None:
    copy_store(root, root.parent / "copy")
    lose(root)
    with pytest.raises(CorruptFileError):
        open_store(root)
    shutil.rmtree(root / "commitlog", ignore_errors=True)
    copy_store(root.parent / "copy" / "commitlog", root / "commitlog")
    with open_store(root) as store:
        assert sum(store.view.max_offset_in_queue("A", queue) for queue in (0, 1)) == 5 * OFTEN
        following = store.view.max_offset_in_queue("A", 0)
        assert store.put(prepared(batch("more", 1, "A", (0,)))).queue_offsets[0] == following


def test_one_unit_that_says_so_alone_is_a_damaged_one(root: Path) -> None:
    """Recovery cuts it off and writes it again, as ever."""
    path = root / "consumequeue" / "A" / "0" / file_name(0)
    paths = sorted(path.parent.iterdir())
    units = b"".join(p.read_bytes() for p in paths)
    last = len(units.rstrip(b"\0")) // 20 * 20
    file, within = divmod(last, len(paths[0].read_bytes()))
    with paths[file].open("r+b") as opened:
        opened.seek(within)
        opened.write(struct.pack(">q", 1 << 40))
    with warnings.catch_warnings(), open_store(root) as store:
        warnings.simplefilter("error")
        assert sum(store.view.max_offset_in_queue("A", queue) for queue in (0, 1)) == 5 * OFTEN


def test_rmqctl_warns_in_its_own_words(root: Path) -> None:
    takes_away_the_last(root)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        shown = run("-S", root, "topic", "queues", "A")
    assert shown.code == 8
    assert re.fullmatch(r"rmqctl: warning: .*storePathCommitLog.*\n", shown.err)
    refused = run("-S", root, "produce", "A", stdin=b"body\n")
    assert refused.code == 4
    assert "bring them back, or give them up with 'rmqctl store repair'" in refused.err


def test_a_replicated_log_is_refused_by_name(root: Path) -> None:
    (root / "dledger-n0" / "data").mkdir(parents=True)
    for opens in (MessageStore.open, StoreView.open):
        with pytest.raises(UnsupportedStoreError, match="DLedger"):
            opens(root)
