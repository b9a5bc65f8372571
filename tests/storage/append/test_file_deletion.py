"""Old files are deleted as in RocketMQ: by age, at their hour, never the last of a kind."""

import os
from datetime import datetime
from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.files.fs import FileSystem
from storage.format.checkpoint import CheckpointData
from storage.format.encode import prepare
from storage.format.index_file import IndexHeader
from storage.readonly import StoreView
from storage.retention import HOUR_MS
from storage.store import MessageStore
from tests.support.samples import (
    START_MS,
    TINY,
    Sample,
    Ticking,
    batch,
    new_store,
    open_store,
    prepared,
)

CONFIG = TINY.with_(file_reserved_time_hours=2)
"""With the hour, 04, and the limits of RocketMQ."""
NOON = int(datetime(2023, 11, 20, 12, 30).timestamp() * 1000)
"""Days after START_MS."""
AT_FOUR = int(datetime(2023, 11, 21, 4, 59).timestamp() * 1000)


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """How full the disk is: as full as a test says, half full by itself."""
    share = {"used": 0.5}
    monkeypatch.setattr("storage.retention.used_ratio", lambda _: share["used"])
    return share


def filled(root: Path, config=CONFIG) -> tuple[MessageStore, Ticking]:
    """A store with several log files, all "written" at the time of their messages."""
    clock = Ticking()
    store = MessageStore(
        new_store(root, config),
        config,
        exclusive=False,
        clock=clock,
        fs=FileSystem(),
        gate_timeout_ms=1000,
    )
    for number in range(10):
        store.put(prepared(batch(f"m{number}", 5, "A", (0, 1), size=300)))
    for path in (root / "commitlog").iterdir():
        os.utime(path, (START_MS / 1000, START_MS / 1000))
    return store, clock


@pytest.mark.conformance("A18")
def test_files_stay_until_their_time_is_over(tmp_path: Path) -> None:
    store, clock = filled(tmp_path / "s")
    with store:
        clock.now = START_MS + 2 * HOUR_MS - 60_000
        assert store.clean(manual=True).log_files == ()
        clock.now = START_MS + 2 * HOUR_MS
        assert len(store.clean(manual=True).log_files) > 0


@pytest.mark.conformance("A18")
def test_files_go_in_the_hour_of_deletion_or_when_asked_by_hand(tmp_path: Path) -> None:
    store, clock = filled(tmp_path / "s")
    with store:
        for moment in (NOON, AT_FOUR - HOUR_MS, AT_FOUR + HOUR_MS):
            clock.now = moment
            assert store.clean().log_files == ()
        clock.now = AT_FOUR
        assert store.clean().log_files
    by_hand, clock = filled(tmp_path / "by_hand")
    with by_hand:
        clock.now = NOON
        assert by_hand.clean(manual=True).log_files


def test_without_an_hour_of_deletion_files_go_by_hand_alone(tmp_path: Path) -> None:
    store, clock = filled(tmp_path / "s", CONFIG.with_(delete_when=""))
    with store:
        for hour in range(24):
            clock.now = NOON + hour * HOUR_MS
            assert store.clean().log_files == ()
        assert store.clean(manual=True).log_files


@pytest.mark.conformance("A18")
def test_a_full_disk_opens_any_hour_for_what_is_old(tmp_path: Path, disk: dict[str, float]) -> None:
    """More than 75 % (diskMaxUsedSpaceRatio); however full, what is young stays."""
    store, clock = filled(tmp_path / "s")
    with store:
        clock.now = NOON
        disk["used"] = 0.75
        assert store.clean().log_files == ()
        disk["used"] = 0.76
        assert store.clean().log_files
    young, clock = filled(tmp_path / "young")
    with young:
        clock.now = START_MS + HOUR_MS
        disk["used"] = 1.0
        assert young.clean().log_files == ()


@pytest.mark.conformance("A18")
def test_a_fuller_disk_forces_what_is_young_out_if_that_is_enabled(
    tmp_path: Path, disk: dict[str, float]
) -> None:
    """More than 85 % (diskSpaceCleanForciblyRatio). A command deletes no more than is old."""
    store, clock = filled(tmp_path / "s", CONFIG.with_(clean_file_forcibly_enable=True))
    with store:
        clock.now = START_MS + HOUR_MS
        disk["used"] = 0.85
        assert store.clean().log_files == ()
        disk["used"] = 0.86
        assert store.clean(manual=True).log_files == ()
        assert store.clean().log_files
        assert len(list((store.root / "commitlog").iterdir())) == 1


@pytest.mark.conformance("A18")
def test_the_file_that_is_written_to_stays_beside_one_made_ahead(
    tmp_path: Path, disk: dict[str, float]
) -> None:
    store, _ = filled(tmp_path / "s", CONFIG.with_(clean_file_forcibly_enable=True))
    with store:
        *_, last = sorted((store.root / "commitlog").iterdir())
        ahead = last.with_name(f"{int(last.name) + 4096:020d}")
        ahead.write_bytes(bytes(4096))
        os.utime(ahead, (1, 1))
        disk["used"] = 0.99
        assert store.clean().log_files
        assert sorted((store.root / "commitlog").iterdir()) == [last, ahead]


def five_a_file(root: Path, clock: Ticking | None = None) -> MessageStore:
    """Messages of which each fifth begins a log file; the first files are long overdue."""
    store = MessageStore(
        new_store(root, CONFIG),
        CONFIG,
        exclusive=False,
        clock=clock or Ticking(),
        fs=FileSystem(),
        gate_timeout_ms=1000,
    )
    for number in range(80):
        store.put(prepared([Sample(f"m{number:02d}", "A", size=600)]))
    assert len(list((root / "commitlog").iterdir())) == 16
    return store


def overdue(root: Path, count: int) -> None:
    for path in sorted((root / "commitlog").iterdir())[:count]:
        os.utime(path, (START_MS / 1000 - 3 * 3600, START_MS / 1000 - 3 * 3600))


@pytest.mark.conformance("A18")
def test_a_run_deletes_ten_files_at_most(tmp_path: Path) -> None:
    with five_a_file(tmp_path / "s") as store:
        overdue(store.root, 16)
        assert [len(store.clean(manual=True).log_files) for _ in range(3)] == [10, 5, 0]


def test_files_from_a_place_of_the_log_on_stay(tmp_path: Path) -> None:
    with five_a_file(tmp_path / "s") as store:
        overdue(store.root, 5)
        firsts = sorted(int(path.name) for path in (store.root / "commitlog").iterdir())
        cleaned = store.clean(manual=True, before=firsts[2])
        assert [int(name.rpartition("/")[2]) for name in cleaned.log_files] == firsts[:2]
        assert cleaned.left == 3
        assert store.clean(manual=True, before=0).log_files == ()
        cleaned = store.clean(manual=True)
        assert (len(cleaned.log_files), cleaned.left) == (3, 0)


@pytest.mark.conformance("A18")
def test_a_queue_file_stays_while_its_last_unit_points_into_the_log(tmp_path: Path) -> None:
    """Message 15 is the last of a queue file of four and the first of a log file of five."""
    with five_a_file(tmp_path / "s") as store:
        overdue(store.root, 3)
        assert len(store.clean(manual=True).log_files) == 3
        names = sorted(path.name for path in (store.root / "consumequeue/A/0").iterdir())
        assert names[0] == f"{3 * 80:020d}"
        assert store.view.min_offset_in_queue("A", 0) == 15
        [message] = store.view.get_message("A", 0, 15, 1).messages
        assert message.body == Sample("m15", "A", size=600).body()
        overdue(store.root, 1)
        assert store.clean(manual=True).queue_files[0] == f"consumequeue/A/0/{names[0]}"


@pytest.mark.conformance("A18")
def test_the_last_file_of_a_queue_and_of_the_index_stay_though_the_log_is_gone(
    tmp_path: Path,
) -> None:
    """All of queue B, a full file, and all keys lie before the log; both show where to go on."""
    clock = Ticking()
    with open_store(new_store(tmp_path / "s", CONFIG), CONFIG, clock=clock) as store:
        for number in range(4):
            store.put(prepared([Sample(f"b{number}", "B", size=600)]))
        for number in range(16):
            no_key = Sample(f"a{number}", "A", size=600).inner()._replace(keys=(), properties=b"")
            store.put(prepare([no_key]))
        overdue(store.root, 2)
        cleaned = store.clean(manual=True)
        assert len(cleaned.log_files) == 2
        assert not any("/B/" in name for name in cleaned.queue_files)
        assert len(list((store.root / "consumequeue/B/0").iterdir())) == 1
        assert len(list((store.root / "index").iterdir())) == 1
        assert store.view.max_offset_in_queue("B", 0) == 4


@pytest.mark.conformance("A18")
def test_an_index_file_stays_while_its_last_key_points_into_the_log(tmp_path: Path) -> None:
    """Message 10 is the last of an index file of eleven keys and the first of a log file."""
    with five_a_file(tmp_path / "s") as store:
        overdue(store.root, 2)
        cleaned = store.clean(manual=True)
        assert (len(cleaned.log_files), cleaned.index_files) == (2, ())
        assert store.view.key_offsets("A", "m10") == [2 * 4096]
        overdue(store.root, 1)
        assert len(store.clean(manual=True).index_files) == 1


@pytest.mark.conformance("A18")
def test_queue_and_index_files_follow_and_the_last_of_each_stays(tmp_path: Path) -> None:
    root = tmp_path / "s"
    store, clock = filled(root)
    with store:
        view = store.view
        last = view.max_offset_in_queue("A", 0)
        clock.now = START_MS + 3 * HOUR_MS
        while (cleaned := store.clean(manual=True)).log_files:
            assert len(cleaned.log_files) <= 10
        assert len(list((root / "commitlog").iterdir())) == 1
        assert len(list((root / "consumequeue/A/0").iterdir())) >= 1
        assert len(list((root / "index").iterdir())) >= 1
        low = view.min_offset_in_queue("A", 0)
        assert 0 < low <= last
        assert view.max_offset_in_queue("A", 0) == last
        for offset in range(low, last):
            assert view.get_message("A", 0, offset, 1).messages, offset
        assert view.get_message("A", 0, 0, 1).next_begin_offset == low

        store.put(prepared([Sample("after", "A")]))
        assert view.get_message("A", 0, last, 1).messages[0].body == Sample("after", "A").body()

    with StoreView.open(root) as fresh:
        assert fresh.min_offset_in_queue("A", 0) == low


@pytest.mark.conformance("A18")
def test_a_reader_that_was_there_before_sees_the_new_minimum(tmp_path: Path) -> None:
    root = tmp_path / "s"
    store, clock = filled(root)
    with store, StoreView.open(root) as reader:
        assert reader.get_message("A", 0, 0, 1).messages
        clock.now = START_MS + 3 * HOUR_MS
        assert store.clean(manual=True).log_files
        answer = reader.get_message("A", 0, 0, 1)
        assert answer.status == "OFFSET_TOO_SMALL"
        assert answer.next_begin_offset == store.view.min_offset_in_queue("A", 0)


@pytest.mark.conformance("A18")
@pytest.mark.parametrize("reopened", [False, True])
def test_what_retention_left_is_a_store_that_opens(tmp_path: Path, reopened: bool) -> None:
    root = tmp_path / "s"
    store, clock = filled(root)
    clock.now = START_MS + 3 * HOUR_MS
    store.clean(manual=True)
    bounds = {queue: store.view.queue_bounds(*queue) for queue in store.view.queues()}
    store.close()
    if reopened:
        (root / "rmqctl/shared").unlink()  # no page: the bounds come from the files
    with MessageStore.open(root, CONFIG) as again:
        assert (again.recovery is not None) is reopened
        assert bounds == {queue: again.view.queue_bounds(*queue) for queue in again.view.queues()}


def test_keys_that_are_pending_are_put_while_their_records_are_there(tmp_path: Path) -> None:
    root = tmp_path / "s"
    config = CONFIG.with_(max_index_num=1000)
    store, clock = filled(root, config)
    with store:
        for number in range(30):
            store.put(prepared([Sample(f"single-{number}", "A", size=300)]))
        first = store.view.bounds.keys_from()
        for path in (root / "commitlog").iterdir():
            os.utime(path, (START_MS / 1000, START_MS / 1000))
        clock.now = START_MS + 3 * HOUR_MS
        assert store.clean(manual=True).log_files
        assert first < store.view.log_min_offset()
        assert store.view.bounds.keys_from() == store.log_end
    [index] = (root / "index").iterdir()
    with index.open("rb") as file:
        assert IndexHeader.unpack_from(file.read(40)).next_entry == 1 + 50 * 2 + 30


def test_a_full_index_file_that_was_deleted_takes_back_nothing_that_the_checkpoint_says(
    tmp_path: Path,
) -> None:
    root = tmp_path / "s"
    store, _ = filled(root)
    with store:
        before = CheckpointData.unpack((root / "checkpoint").read_bytes())
        assert before.index_msg_timestamp > 0
        store._flusher.note_full_index(root / "index" / "20000101000000000")
        assert CheckpointData.unpack((root / "checkpoint").read_bytes()) == before


QUEUE_FILE = "consumequeue/A/0/00000000000000000000"


def cut_short(path: Path) -> None:
    os.truncate(path, 10)


def make_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [cut_short, make_a_pipe])
def test_a_damaged_queue_file_stays_and_other_files_go(tmp_path: Path, damage) -> None:
    with five_a_file(tmp_path / "s") as store:
        store.flush()  # a pipe cannot be synced
        damage(store.root / QUEUE_FILE)
        overdue(store.root, 10)
        cleaned = store.clean(manual=True)
        assert len(cleaned.log_files) == 10
        assert cleaned.queue_files == ()
        assert cleaned.index_files
        assert [str(error.path.relative_to(store.root)) for error in cleaned.damaged] == [
            QUEUE_FILE
        ]
        assert len(list((store.root / "consumequeue/A/0").iterdir())) == 20


@pytest.mark.parametrize("damage", [cut_short, make_a_pipe])
def test_a_damaged_index_file_stays_and_other_files_go(tmp_path: Path, damage) -> None:
    with five_a_file(tmp_path / "s") as store:
        first = min((store.root / "index").iterdir())
        damage(first)
        overdue(store.root, 10)
        cleaned = store.clean(manual=True)
        assert len(cleaned.log_files) == 10
        assert cleaned.queue_files
        assert cleaned.index_files == ()
        assert [error.path for error in cleaned.damaged] == [first]


def test_deletion_by_itself_names_a_damaged_file_and_deletes_the_others(tmp_path: Path) -> None:
    clock = Ticking()
    with five_a_file(tmp_path / "s", clock) as store:
        cut_short(store.root / QUEUE_FILE)
        overdue(store.root, 10)
        clock.now = AT_FOUR
        with pytest.raises(CorruptFileError, match=f"{QUEUE_FILE} is damaged at byte 10"):
            store._clean_when_due()
        assert len(list((store.root / "commitlog").iterdir())) == 6


def test_a_pipe_in_the_place_of_an_index_file_does_not_stop_a_sync(tmp_path: Path) -> None:
    with five_a_file(tmp_path / "s") as store:
        make_a_pipe(min((store.root / "index").iterdir()))
        store.flush()
