"""Device and inode of the shared state: numbers of 64 bits without a sign."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.samples import SMALL, Sample, new_store, open_store, prepared

_LARGE = 1 << 63


def test_a_store_on_a_file_system_with_large_inode_numbers_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As mergerfs and GlusterFS number them; half of all numbers are 2^63 or more."""
    root = new_store(tmp_path / "s", SMALL)
    fstat = os.fstat

    def numbered(fd: int) -> Any:
        found = fstat(fd)
        if Path(f"/proc/self/fd/{fd}").readlink().name != "shared":
            return found
        fields = {name: getattr(found, name) for name in dir(found) if name.startswith("st_")}
        return SimpleNamespace(**fields | {"st_ino": found.st_ino | _LARGE, "st_dev": _LARGE + 7})

    monkeypatch.setattr("storage.coordination.shared_state.os.fstat", numbered)
    with open_store(root, SMALL) as store:
        store.put(prepared((Sample("one", "T", 0),)))
    with MessageStore.open(root) as store:
        assert store.recovery is None, "the shared state is trusted"
    with StoreView.open(root) as view:
        assert len(view.get_message("T", 0, 0, 32).messages) == 1
