"""A rebuild of queues and index may be killed at any instant."""

from pathlib import Path

import pytest

from storage.files.fs import FileSystem
from storage.tools.rebuild.replacement import staging
from tests.support.crash import Acknowledge, Child, die, shared_out
from tests.support.samples import Ticking, batch, new_store, open_store, prepared


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.long)])
def test_nothing_that_was_readable_is_lost_and_the_next_run_finishes(every: int) -> None:
    found = shared_out("killed_rebuild:killed_while_replacing", every)
    assert max(one["instants"] for one in found) > 150


@pytest.mark.crash
def test_the_next_first_writer_removes_what_a_killed_rebuild_has_left(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store")
    fs = FileSystem()

    def run(_: Acknowledge) -> None:
        with staging(root, fs) as made:
            (made / "A/0").mkdir(parents=True)
            (made / "A/0/00000000000000000000").write_bytes(bytes(600))
            die()

    assert Child(run).wait()[0]
    assert (root / "rmqctl/rebuilt/A/0/00000000000000000000").exists()
    with open_store(root, clock=Ticking()) as store:
        store.put(prepared(batch("m", 1, "A")))
        assert not (root / "rmqctl/rebuilt").exists()


def test_a_link_in_the_place_of_files_of_a_rebuild_is_not_followed(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store")
    (tmp_path / "else").mkdir()
    (tmp_path / "else/file").write_bytes(b"x")
    (root / "rmqctl/rebuilt").symlink_to(tmp_path / "else")
    open_store(root, clock=Ticking()).close()
    assert (tmp_path / "else/file").read_bytes() == b"x"
