"""Keys are found in a store that lost pages of its index, before a writer has recovered it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from storage.errors import RecoveryNeededError
from storage.format.index_file import entry_position, slot_position
from storage.index import prefix
from storage.readonly import StoreView
from tests.support.copies import copy_store
from tests.support.durable_fs import DurableFileSystem
from tests.support.every_instant import LATER, lose_page
from tests.support.examples import one_in
from tests.support.samples import (
    SMALL,
    TINY,
    Sample,
    Ticking,
    new_store,
    open_store,
    prepared,
    sync_flush,
)

COUNT = 60


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A copy of a store that a writer has open, as after a reboot."""
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store:
        for number in range(COUNT):
            store.put(prepared([Sample(f"id-{number}", "T", keys=("k",))]))
        store.flush()
        copy_store(root, tmp_path / "lost", ignore=shutil.ignore_patterns("bells"))
    lose_page(tmp_path / "lost")
    return tmp_path / "lost"


def index_file(root: Path) -> Path:
    return max((root / "index").iterdir())


def zero(path: Path, start: int, end: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(end - start))


def check_all_are_found(root: Path) -> None:
    with StoreView.open(root, SMALL) as view:
        assert not view.has_shared_state
        for number in range(COUNT):
            [found] = view.find_unique("T", f"id-{number}")
            assert found.msg_id == f"id-{number}"
        assert len(view.key_offsets("T", "k")) == COUNT
        assert len(view.query_message("T", "k", 10).messages) == 10


@pytest.mark.parametrize("what", ["nothing", "header", "slots", "entries", "a sector", "file"])
def test_every_key_is_found_whatever_of_the_index_was_lost(lost: Path, what: str) -> None:
    path, slots = index_file(lost), SMALL.max_hash_slot_num
    first = entry_position(slots, 1)
    if what == "file":
        path.unlink()
    elif what != "nothing":
        zero(
            path,
            *{
                "header": (0, 40),
                "slots": (slot_position(0), slot_position(slots)),
                "entries": (first, path.stat().st_size),
                "a sector": (first + 170, first + 190),
            }[what],
        )
    check_all_are_found(lost)


def test_where_too_much_would_have_to_be_read_recovery_is_asked_for(lost, monkeypatch) -> None:
    zero(index_file(lost), 0, index_file(lost).stat().st_size)
    monkeypatch.setattr(prefix, "_REMEMBERED", 0)
    monkeypatch.setattr(prefix, "MOST_READ", 10)
    needed = pytest.raises(RecoveryNeededError, match="keys in the index")
    with StoreView.open(lost, SMALL) as view, needed:
        view.find_unique("T", "id-3")
    with open_store(lost, SMALL) as store:
        assert len(store.view.find_unique("T", "id-3")) == 1


@pytest.mark.parametrize("what", ["nothing", "entries", "file"])
def test_the_newest_come_first_and_only_those_of_the_time_asked_for(lost: Path, what: str) -> None:
    path = index_file(lost)
    if what == "file":
        path.unlink()
    elif what == "entries":
        first = entry_position(SMALL.max_hash_slot_num, 1)
        zero(path, first + 20 * 30, first + 20 * 50)
    with StoreView.open(lost, SMALL) as view:
        every = view.query_message("T", "k", COUNT).messages
        assert sorted(m.msg_id for m in every) == sorted(f"id-{n}" for n in range(COUNT))
        for most in (1, 7):
            newest = view.query_message("T", "k", most).messages
            offsets = sorted(m.commitlog_offset for m in newest)
            assert offsets == sorted(m.commitlog_offset for m in every)[-most:]
        times = sorted(m.store_timestamp for m in every)
        begin, end = times[20], times[40]
        found = view.query_message("T", "k", COUNT, begin, end).messages
        assert {m.store_timestamp for m in found} <= set(times)
        within = {m.msg_id for m in every if begin + 1000 <= m.store_timestamp <= end}
        assert within <= {m.msg_id for m in found}
        assert not view.query_message("U", "k", COUNT).messages


SMALL_FILES = SMALL.with_(max_index_num=12, max_hash_slot_num=5)
"""11 keys in an index file."""


@pytest.fixture
def many_files(tmp_path: Path) -> tuple[Path, int]:
    """As ``lost``, with two topics and many index files; and how many files were synced."""
    root = new_store(tmp_path / "store", SMALL_FILES)
    clock, synced = Ticking(step=401), 0
    with open_store(root, SMALL_FILES, clock=clock) as store:
        for number in range(COUNT):
            store.put(prepared([Sample(f"id-{number}", "TU"[number % 2], keys=("k", "l"))]))
            if number == 20:
                store.flush()
                synced = len(list((root / "index").iterdir()))
        store._appender.one._keys.put()
        copy_store(root, tmp_path / "lost", ignore=shutil.ignore_patterns("bells"))
    lose_page(tmp_path / "lost")
    return tmp_path / "lost", synced


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_whatever_sectors_of_later_files_are_lost_each_key_is_found_once(
    many_files: tuple[Path, int], seed: int
) -> None:
    root, synced = many_files
    chance = random.Random(seed)
    files = sorted((root / "index").iterdir())
    assert len(files) > synced + 4
    first = entry_position(SMALL_FILES.max_hash_slot_num, 1)
    for path in chance.sample(files[synced:], chance.choice((0, 1, 2, 9))):
        begin = chance.choice((0, first, first + 20 * chance.randrange(11)))
        zero(path, begin, chance.choice((path.stat().st_size, begin + 20 * chance.randrange(1, 5))))
    with StoreView.open(root, SMALL_FILES) as view:
        assert not view.has_shared_state
        for topic, parity in (("T", 0), ("U", 1)):
            wanted = [f"id-{n}" for n in range(COUNT) if n % 2 == parity]
            for key in ("k", "l"):
                found = view.query_message(topic, key, COUNT).messages
                assert [m.msg_id for m in found] == wanted
                newest = view.query_message(topic, key, 5).messages
                assert [m.msg_id for m in newest] == wanted[-5:]
                times = [m.store_timestamp for m in found]
                within = view.query_message(topic, key, COUNT, times[5], times[25]).messages
                ids = {m.msg_id for m in within}
                assert {m.msg_id for m in found[8:23]} <= ids <= {m.msg_id for m in found[2:29]}
            for name in wanted:
                assert [m.msg_id for m in view.find_unique(topic, name)] == [name]


@pytest.mark.slow
def test_keys_are_found_after_a_power_loss_soon_after_a_recovery(tmp_path: Path) -> None:
    """The last record lost its keys, so the index file has room for one more: the keys that the
    next messages put there must not be replaced by the old ones when the power goes again."""
    config = sync_flush(TINY)
    root = new_store(tmp_path / "store", config)
    lost = tmp_path / "lost"
    with open_store(root, config) as store:
        for number in range(5):
            store.put(prepared([Sample(f"id-{number}", "T", keys=("k",))]))
        last = store.put(prepared([Sample("last", "T", tags="x")])).commitlog_offsets[0]
        store.flush()
        copy_store(root, lost, ignore=shutil.ignore_patterns("bells"))
    lose_page(lost)
    [log] = (lost / "commitlog").iterdir()
    zero(log, log.read_bytes().index(b"UNIQ_KEY", last), log.stat().st_size)

    known: list[str] = []

    def check_after_another_loss(what: str) -> None:
        image = device.buffer(tmp_path / "again")
        newest = index_file(lost)
        if (image / "index" / newest.name).exists():  # the device has it, and less of the others
            shutil.copy2(newest, image / "index" / newest.name)
        lose_page(image)
        with open_store(image, config, clock=Ticking(LATER)), StoreView.open(image, config) as view:
            for name in known:
                assert view.find_unique("T", name), f"{name}, {what}"
                assert view.find_unique("T", name)[0].msg_id == name
        shutil.rmtree(image)

    device = DurableFileSystem(lost, check_after_another_loss)
    with open_store(lost, config, fs=device, clock=Ticking(LATER - 1_000_000)) as store:
        for number in range(6):
            name = f"after-{number}"
            store.put(prepared([Sample(name, "T", keys=("k",))]))
            known.append(name)
    device.forget()
