"""What FORMAT.md says about damage and about differences, where no other test shows it.

Damage is done to closed stores. Without its shared state a store is recovered at the next opening.
"""

import os
import shutil
from pathlib import Path

import pytest

from storage.configs.progress import ProgressFile
from storage.errors import CorruptFileError, StoreBrokenError
from storage.format.cq_unit import PRE_BLANK
from storage.format.encode import MessageInner, prepare
from storage.format.index_file import INDEX_ENTRY_SIZE, IndexHeader, entry_position
from storage.format.names import file_name
from storage.format.properties import encode_properties
from storage.readonly import StoreView
from storage.results import GetMessageStatus, PutMessageStatus
from tests.support.copies import copy_store
from tests.support.samples import (
    HOST,
    SMALL,
    START_MS,
    TINY,
    Ticking,
    batch,
    new_store,
    open_store,
    prepared,
)

TOPIC = "Documented"
COUNT = 60


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A closed store of several files of each kind, with keys k0, k1 and k2."""
    root = new_store(tmp_path / "store")
    with open_store(root) as store:
        for sample in batch("m", COUNT, TOPIC):
            store.put(prepared([sample]))
    return root


def log_files(root: Path) -> list[Path]:
    return sorted((root / "commitlog").iterdir())


def lose_page(root: Path, *, clean: bool = True) -> None:
    (root / "rmqctl" / "shared").unlink()
    if not clean:
        (root / "abort").touch()


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def notes_of_opening(root: Path) -> list[str]:
    with open_store(root) as store:
        assert store.recovery is not None
        return store.recovery.notes


def read_offsets(root: Path, topic: str = TOPIC) -> list[int]:
    with StoreView.open(root) as view:
        found = (view.get_message(topic, 0, offset, 1) for offset in range(COUNT))
        return [message.queue_offset for result in found for message in result.messages]


def end_of_log(root: Path) -> int:
    with StoreView.open(root) as view:
        return view.log_max_offset()


def test_bytes_behind_the_end_are_zeroed(root: Path) -> None:
    position = end_of_log(root) % TINY.mapped_file_size_commit_log
    overwrite(log_files(root)[-1], position, b"left over")
    lose_page(root)
    assert any("after the end zeroed" in note for note in notes_of_opening(root))
    assert not any(log_files(root)[-1].read_bytes()[position:])
    assert read_offsets(root) == list(range(COUNT))


def test_other_bytes_in_place_of_a_blank_record_end_nothing(root: Path) -> None:
    path = log_files(root)[-2]
    position = path.read_bytes().rindex(bytes.fromhex("cbd43194")) - 4
    overwrite(path, position, b"nonsense")
    lose_page(root)
    assert any("are left out" in note for note in notes_of_opening(root))
    assert read_offsets(root) == list(range(COUNT))


def test_units_from_a_zeroed_one_on_are_made_again(root: Path) -> None:
    files = sorted((root / "consumequeue" / TOPIC / "0").iterdir())
    before = [path.read_bytes() for path in files]
    overwrite(files[-2], 20, bytes(20))
    lose_page(root)
    notes_of_opening(root)
    assert [path.read_bytes() for path in files] == before


def test_an_index_deleted_after_a_clean_exit_stays_away(root: Path) -> None:
    shutil.rmtree(root / "index")
    lose_page(root)
    notes_of_opening(root)
    with StoreView.open(root) as view:
        assert view.query_message(TOPIC, "k1").messages == []


def test_a_torn_index_is_cut_and_filled_up(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store:
        store.put(prepared(batch("m", COUNT, TOPIC)))
    (path,) = (root / "index").iterdir()
    header = IndexHeader.unpack_from(path.read_bytes())
    whole = entry_position(SMALL.max_hash_slot_num, header.index_count // 2)
    overwrite(path, whole, b"\xff" * INDEX_ENTRY_SIZE * 3)
    lose_page(root, clean=False)
    with open_store(root, SMALL) as store:
        assert store.recovery is not None
        assert any("keys, the rest made anew" in note for note in store.recovery.notes)
        for name in ("k0", "k1", "k2"):
            assert len(store.view.query_message(TOPIC, name).index_offsets) == COUNT // 3
    assert (root / "index" / path.name).exists()


def test_log_files_behind_the_end_are_set_aside_or_removed(root: Path) -> None:
    end = int(log_files(root)[-1].name) + TINY.mapped_file_size_commit_log
    full, empty = (
        root / "commitlog" / file_name(end + number * TINY.mapped_file_size_commit_log)
        for number in range(2)
    )
    full.write_bytes(b"somebody's".ljust(TINY.mapped_file_size_commit_log, b"\0"))
    empty.write_bytes(bytes(TINY.mapped_file_size_commit_log))
    lose_page(root)
    notes_of_opening(root)
    assert not full.exists()
    assert not empty.exists()
    (kept,) = (root / "rmqctl" / "set-aside").iterdir()
    assert kept.read_bytes().startswith(b"somebody's")
    assert read_offsets(root) == list(range(COUNT))


def test_a_log_file_of_another_length_can_be_read_and_not_written(root: Path) -> None:
    last = log_files(root)[-1]
    os.truncate(last, TINY.mapped_file_size_commit_log - 100)
    lose_page(root)
    with pytest.raises(CorruptFileError, match="its length is"):
        open_store(root)
    assert read_offsets(root) == list(range(COUNT))


def test_without_a_log_file_in_the_middle_a_store_can_be_read_and_not_written(root: Path) -> None:
    log_files(root)[1].unlink()
    lose_page(root)
    with pytest.raises(CorruptFileError, match="is missing"):
        open_store(root)
    offsets = read_offsets(root)
    assert offsets[0] == 0
    assert offsets[-1] == COUNT - 1
    assert len(offsets) < COUNT


def test_other_files_among_log_files_are_passed_over(root: Path) -> None:
    (root / "commitlog" / "notes.txt").write_text("mine")
    (root / "commitlog" / "folder").mkdir()
    lose_page(root)
    notes_of_opening(root)
    assert (root / "commitlog" / "notes.txt").read_text() == "mine"
    assert read_offsets(root) == list(range(COUNT))


def test_a_copied_page_is_not_believed(root: Path, tmp_path: Path) -> None:
    with open_store(root) as store:
        assert store.recovery is None
    copy = tmp_path / "copy"
    copy_store(root, copy)
    with open_store(copy) as store:
        assert store.recovery is not None


def test_each_read_checks_the_crc_of_the_body(root: Path) -> None:
    path = log_files(root)[0]
    position = path.read_bytes().index(b"<m-1>")
    overwrite(path, position, b"[")
    with StoreView.open(root) as view:
        (found,) = view.get_message(TOPIC, 0, 1, 1).messages
        assert found.queue_offset == 2


def test_a_record_that_contradicts_its_unit_is_being_removed(root: Path) -> None:
    (last,) = (root / "consumequeue" / TOPIC / "0").glob(file_name((COUNT - 4) * 20))
    overwrite(last, 3 * 20, last.read_bytes()[:20])
    with StoreView.open(root) as view:
        result = view.get_message(TOPIC, 0, COUNT - 1, 1)
        assert (result.status, result.messages) == (GetMessageStatus.MESSAGE_WAS_REMOVING, [])
        assert result.next_begin_offset == COUNT


def test_store_times_never_go_back(root: Path) -> None:
    with open_store(root, clock=Ticking(START_MS - 10**9)) as store:
        put = store.put(prepared(batch("late", 1, TOPIC)))
        before = store.view.store_timestamp(TOPIC, 0, COUNT - 1)
        assert put.store_timestamp == before
        assert before is not None
        assert before > START_MS


def test_a_log_file_is_made_when_it_is_needed(root: Path) -> None:
    with open_store(root) as store:
        assert int(log_files(root)[-1].name) < store.log_end


def test_a_nearly_full_disk_deletes_nothing_early_unless_told(root: Path) -> None:
    config = TINY.with_(delete_when="", disk_space_clean_forcibly_ratio=0.0)
    assert not config.clean_file_forcibly_enable
    with open_store(root, config) as store:
        assert store.clean().log_files == ()
    with open_store(root, config.with_(clean_file_forcibly_enable=True)) as store:
        assert store.clean().log_files


def test_little_free_space_refuses_writes(root: Path) -> None:
    with open_store(root, TINY.with_(min_free_bytes=1 << 62)) as store:
        result = store.put(prepared(batch("late", 1, TOPIC)))
        assert result.status is PutMessageStatus.SERVICE_NOT_AVAILABLE
        assert store.view.max_offset_in_queue(TOPIC, 0) == COUNT


def test_recovery_fills_light_queues(root: Path) -> None:
    names = {"INNER_MULTI_DISPATCH": "%LMQ%one,%LMQ%two", "INNER_MULTI_QUEUE_OFFSET": "0,0"}
    message = MessageInner(TOPIC, 0, b"light", encode_properties(names), START_MS, HOST, HOST)
    with open_store(root) as store:
        store.put(prepare([message]))
        assert store.view.max_offset_in_queue("%LMQ%two", 0) == 0
    shutil.rmtree(root / "consumequeue")
    lose_page(root)
    notes_of_opening(root)
    with StoreView.open(root) as view:
        (found,) = view.get_message("%LMQ%two", 0, 0, 1).messages
        assert found.body == b"light"


def test_what_is_unknown_is_none(root: Path) -> None:
    with StoreView.open(root) as view:
        assert view.earliest_message_time("Empty", 0) is None
    assert ProgressFile(root).read().get(f"{TOPIC}@group", 0).offset is None


HEAD_DAMAGE = {
    "size": (0, b"\x7f\xff\xff\xff"),
    "magic": (4, b"\0\0\0\0"),
    "body length": (84, b"\xff" * 4),
}


@pytest.mark.parametrize("field", HEAD_DAMAGE)
def test_a_damaged_head_costs_a_writer_one_message_and_no_more(root: Path, field: str) -> None:
    with StoreView.open(root) as view:
        victim = view.get_message(TOPIC, 0, 55, 1).messages[0].commitlog_offset
    size = TINY.mapped_file_size_commit_log
    at, data = HEAD_DAMAGE[field]
    overwrite(root / "commitlog" / file_name(victim - victim % size), victim % size + at, data)
    lose_page(root)

    assert any("passed" in note for note in notes_of_opening(root))

    assert read_offsets(root) == [offset for offset in range(COUNT) if offset != 55]
    with open_store(root) as store:
        store.put(prepared(batch("new", 1, TOPIC)))
        assert store.view.get_message(TOPIC, 0, COUNT, 1).messages


def test_records_behind_a_torn_place_are_cut_after_a_crash_and_set_aside(root: Path) -> None:
    """Nothing vouches for what follows: a power loss leaves pages in any order."""
    last = log_files(root)[-1]
    with StoreView.open(root) as view:
        torn = view.get_message(TOPIC, 0, COUNT - 3, 1).messages[0]
        kept = view.get_message(TOPIC, 0, COUNT - 2, 1).messages[0]
    position = torn.commitlog_offset % TINY.mapped_file_size_commit_log
    assert torn.commitlog_offset >= int(last.name)
    overwrite(last, position, bytes(torn.store_size))
    (root / "checkpoint").unlink()
    lose_page(root, clean=False)

    notes = notes_of_opening(root)

    assert any("kept as" in note for note in notes)
    assert read_offsets(root) == list(range(COUNT - 3))
    (aside,) = (root / "rmqctl" / "set-aside").iterdir()
    assert kept.stored_body in aside.read_bytes()


def test_a_queue_file_of_another_length_is_made_anew_from_the_log(root: Path) -> None:
    path = sorted((root / "consumequeue" / TOPIC / "0").iterdir())[-2]
    before = path.read_bytes()
    os.truncate(path, len(before) - 20)
    lose_page(root)

    assert any("made anew from the log" in note for note in notes_of_opening(root))

    assert path.read_bytes() == before
    assert read_offsets(root) == list(range(COUNT))
    assert list((root / "rmqctl" / "set-aside").iterdir())


@pytest.mark.parametrize("number", [0, -2, -1])
def test_a_folder_in_the_place_of_a_queue_file_is_set_aside(root: Path, number: int) -> None:
    path = sorted((root / "consumequeue" / TOPIC / "0").iterdir())[number]
    before = path.read_bytes()
    path.unlink()
    path.mkdir()
    lose_page(root)

    assert any("made anew from the log" in note for note in notes_of_opening(root))

    assert path.read_bytes() == before
    assert read_offsets(root) == list(range(COUNT))
    assert any(not one.is_file() for one in (root / "rmqctl" / "set-aside").iterdir())


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "crashed"])
@pytest.mark.parametrize(
    ("cuts", "end"),
    [({240: 20}, 13), ({240: 70}, 15), ({240: 100}, 15), ({160: 30}, 15), ({160: 0, 240: 0}, 12)],
    ids=["cut", "torn", "too long", "not the last", "empty"],
)
def test_a_queue_whose_messages_are_deleted_keeps_its_end_though_a_file_has_another_length(
    root: Path, clean: bool, cuts: dict[int, int], end: int
) -> None:
    """The last files of the idle queue are [160 .. 240) and [240 .. 320), its end is 15."""
    with open_store(root) as store:
        store.put(prepared(batch("idle", 15, "Idle")))
        for sample in batch("later", COUNT, TOPIC):
            store.put(prepared([sample]))
    folder = root / "consumequeue" / "Idle" / "0"
    after_idle = _record_end(root, "Idle", 14)
    for path in log_files(root):
        if int(path.name) + TINY.mapped_file_size_commit_log <= after_idle + 4096:
            path.unlink()
    for first in (0, 80):
        (folder / file_name(first)).unlink()
    before = {first: (folder / file_name(first)).read_bytes() for first in (160, 240)}
    for first, length in cuts.items():
        os.truncate(folder / file_name(first), length)
    lose_page(root, clean=clean)
    notes = notes_of_opening(root)
    assert any("its end kept" in note for note in notes)
    after = {first: _bytes_of(folder / file_name(first)) for first in (160, 240)}
    if cuts == {240: 20}:
        assert after == {160: before[160], 240: before[240][:20] + bytes(60)}
    elif cuts == {160: 30}:
        assert after == {160: before[160][:20] + PRE_BLANK * 3, 240: before[240]}
    elif 240 in cuts and cuts[240] > 60:
        assert after == before
    assert len(list((root / "rmqctl" / "set-aside").iterdir())) == len(cuts)
    with open_store(root) as store:
        assert store.put(prepared(batch("new", 1, "Idle"))).queue_offsets[0] == end


def _record_end(root: Path, topic: str, queue_offset: int) -> int:
    with StoreView.open(root) as view:
        unit = view.unit(topic, 0, queue_offset)
        assert unit is not None
        return unit[0] + unit[1]


def _bytes_of(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def test_a_short_queue_file_is_never_written_over(root: Path) -> None:
    """With a page that is trusted nothing is recovered, and the length shows at the next unit."""
    with open_store(root) as store:
        store.put(prepared(batch("two of four", 2, TOPIC)))
    path = sorted((root / "consumequeue" / TOPIC / "0").iterdir())[-1]
    os.truncate(path, 20)
    with pytest.raises((CorruptFileError, StoreBrokenError), match=f"{path.name}|lacks places"):
        _put_without_recovery(root)
    assert path.stat().st_size == 20


def _put_without_recovery(root: Path) -> None:
    with open_store(root) as store:
        assert store.recovery is None
        store.put(prepared(batch("third", 1, TOPIC)))
