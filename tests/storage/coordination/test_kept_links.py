"""Second names of files, for a queue whose name leaves no room for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.coordination.kept_links import KeptLinks
from storage.files.fs import FileSystem
from storage.format.names import file_name


@pytest.mark.parametrize("length", [232, 233, 255])
def test_a_queue_with_the_longest_name_has_links_or_does_without(
    tmp_path: Path, length: int
) -> None:
    """Such are light queues: deleting old files ended there."""
    folder = tmp_path / "consumequeue" / ("q" * length) / "0"
    folder.mkdir(parents=True)
    (tmp_path / "rmqctl" / "kept").mkdir(parents=True)
    path = folder / file_name(0)
    path.touch()
    links = KeptLinks(FileSystem(), tmp_path)
    assert links.keep(path, path) == links.keeps(path) == (length == 232)
    links.forget(path)
    assert not links.keeps(path)
