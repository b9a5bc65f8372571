"""A process that waits for the write lock of a replaced store must not write to the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.coordination.exclusive import alone
from tests.support.consumers import eventually
from tests.support.puppet import Puppet, PuppetError
from tests.support.samples import new_store


@pytest.mark.slow
def test_an_opener_that_waited_for_a_store_that_was_moved_aside_is_refused(tmp_path):
    root = new_store(tmp_path / "store")
    with Puppet() as puppet:
        with alone(root):
            puppet.send("open", root=str(root))
            eventually(lambda: _has_open(puppet.pid, root / "lock"))
            root.rename(tmp_path / "aside")
            new_store(root)
        with pytest.raises(PuppetError, match="replaced just now"):
            puppet.receive()
        assert puppet.call("open", root=str(root)) is True
        puppet.call("put", name="m")
        puppet.call("close")


def _has_open(pid: int, path: Path) -> bool:
    links = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(fd.readlink())
        except FileNotFoundError:
            continue
    return path in links
