"""Messages of a run of units: what each unit alone gives, whatever has become of the log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from storage.config import SMALL_STORE
from storage.format.cq_unit import CQ_STORE_UNIT
from storage.format.encode import MessageInner, prepare
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.compiled import compiled, native, needs_compiled

CONFIG = replace(SMALL_STORE, mapped_file_size_commit_log=8 << 10)
COUNT = 40


def inner(number: int) -> MessageInner:
    host = bytes(20) if number % 11 == 5 else bytes(8)  # an IPv6 one now and then
    return MessageInner("T", 0, b"%d" % number * 300, b"UNIQ_KEY\1u", 1, host, bytes(8))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Several log files, the second of which is gone, and some records that are not whole."""
    root = tmp_path / "store"
    MessageStore.create(root, CONFIG)
    with MessageStore.open(root, CONFIG) as writer:
        writer.put(prepare([inner(number) for number in range(COUNT)]))
        units = writer.view.units("T", 0, 0, COUNT)
    files = sorted((root / "commitlog").iterdir())
    assert len(files) > 3
    files[1].unlink()
    for number in (2, COUNT - 3):
        place = units[number][0]
        damaged = files[place // (8 << 10)]
        content = bytearray(damaged.read_bytes())
        content[place % (8 << 10) + 120] ^= 1  # a byte of the body
        damaged.write_bytes(content)
    return root


@pytest.mark.parametrize(
    "module", [None, pytest.param(compiled, marks=needs_compiled)], ids=["pure", "compiled"]
)
def test_a_run_gives_what_each_of_its_units_gives(
    store: Path, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", module)
    with StoreView.open(store) as view:
        units = view.unit_bytes("T", 0, 0, COUNT)
        for first in (0, 1, 7, COUNT - 1):
            rest = units[first * CQ_STORE_UNIT.size :]
            found = view.messages_of_units("T", 0, first, rest)
            alone = [
                view.message_of_unit("T", 0, first + at, unit)
                for at, unit in enumerate(CQ_STORE_UNIT.iter_unpack(rest))
            ]
            told = [m and (m.queue_offset, m.body, m.born_host_bytes) for m in found]
            assert told == [m and (m.queue_offset, m.body, m.born_host_bytes) for m in alone]
        found = view.messages_of_units("T", 0, 0, units)
        assert found[2] is None
        assert found[COUNT - 3] is None
        assert None in found[5 : COUNT - 3], "the file that is gone"
        assert found[-1] is not None
        assert {len(m.born_host_bytes) for m in found if m} == {8, 20}
        assert view.messages_of_units("T", 0, 0, b"") == []
        assert view.messages_of_units("T", 7, 0, units[:40]) == [None, None]
