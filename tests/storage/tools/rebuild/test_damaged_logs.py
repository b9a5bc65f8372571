"""Queues rebuilt where the log has lost something, and their readers meanwhile."""

from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.format.cq_unit import CQ_STORE_UNIT, PRE_BLANK
from storage.format.names import CONSUMEQUEUE
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.rebuild.queue import plan_queues, rebuild_queue
from tests.support.killed_rebuild import is_as_the_log_says, rebuild_all
from tests.support.samples import SMALL, Sample, Ticking, new_store, open_store, prepared


def put(root: Path, *samples: Sample, config: StoreConfig = SMALL) -> list[int]:
    """Puts one after the other; gives where their records lie."""
    places: list[int] = []
    store = open_store(root, config, clock=Ticking())
    for sample in samples:
        places += map(int, store.put(prepared((sample,))).commitlog_offsets)
    store.close()
    return places


def ids(view: StoreView, topic: str = "A") -> list[str]:
    low, high = view.queue_bounds(topic, 0)
    found = []
    for offset in range(low, high):
        messages = view.get_message(topic, 0, offset, 1).messages
        if messages and messages[0].queue_offset == offset:
            found.append(messages[0].properties["UNIQ_KEY"])
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_store(tmp_path / "s", SMALL)


def wipe(root: Path, start: int, end: int) -> None:
    with (root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(start)
        file.write(b"\xee" * (end - start))


def units(root: Path) -> bytes:
    return (root / CONSUMEQUEUE / "A" / "0" / f"{0:020d}").read_bytes()


def test_lost_messages_in_the_middle_are_fillers(root: Path) -> None:
    places = put(root, *(Sample(f"m{number}", "A") for number in range(8)))
    before = units(root)
    wipe(root, places[3], places[5])
    (root / CONSUMEQUEUE / "A" / "0" / f"{0:020d}").unlink()
    rebuild_all(root)
    assert units(root) == before[:60] + PRE_BLANK * 2 + before[100:]
    with StoreView.open(root) as view:
        assert view.queue_bounds("A", 0) == (0, 8)
        assert ids(view) == ["m0", "m1", "m2", "m5", "m6", "m7"]
    assert is_as_the_log_says(root)


def test_no_new_message_gets_the_offset_of_a_lost_one(root: Path) -> None:
    places = put(root, *(Sample(f"m{number}", "A") for number in range(6)), Sample("b", "B"))
    wipe(root, places[4], places[6])
    with (root / CONSUMEQUEUE / "A" / "0" / f"{0:020d}").open("r+b") as file:
        file.write(b"\x01" * 20)  # so that there is something to do
    rebuild_all(root)
    with StoreView.open(root) as view:
        assert ids(view) == ["m0", "m1", "m2", "m3"]
        assert view.max_offset_in_queue("A", 0) == 6
        queues = {queue.topic: queue for queue in plan_queues(view)}
        assert (queues["A"].fillers, queues["A"].is_same) == (2, True)
    assert CQ_STORE_UNIT.unpack_from(units(root), 80)[0] == places[4]


def test_a_queue_whose_messages_are_all_lost_keeps_its_files_and_its_end(root: Path) -> None:
    places = put(root, *(Sample(f"m{number}", "A") for number in range(6)), Sample("b", "B"))
    before = units(root)
    wipe(root, 0, places[6])
    with StoreView.open(root) as view:
        queues = {queue.topic: queue for queue in plan_queues(view)}
        assert (queues["A"].is_same, queues["A"].next_after) == (True, 6)
    rebuild_all(root)
    assert units(root) == before
    assert put(root, Sample("new", "A"))
    with StoreView.open(root) as view:
        assert view.queue_bounds("A", 0)[1] == 7
        assert ids(view) == ["new"]


def test_a_damaged_unit_among_those_of_lost_messages_does_not_end_the_queue(root: Path) -> None:
    places = put(root, *(Sample(f"m{number}", "A") for number in range(8)), Sample("b", "B"))
    before = units(root)
    wipe(root, places[3], places[8])
    with (root / CONSUMEQUEUE / "A" / "0" / f"{0:020d}").open("r+b") as file:
        file.seek(5 * 20)
        file.write(bytes(20))
    rebuild_all(root)
    assert units(root) == before[:100] + PRE_BLANK + before[120:]
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("A", 0) == 8


def test_a_lost_file_among_those_of_lost_messages_does_not_end_the_queue(tmp_path: Path) -> None:
    config = SMALL.with_(mapped_file_size_consume_queue=80)
    root = new_store(tmp_path / "s", config)
    samples = [Sample(f"m{number}", "A") for number in range(12)]
    places = put(root, *samples, Sample("b", "B"), config=config)
    wipe(root, places[2], places[12])
    (root / CONSUMEQUEUE / "A" / "0" / f"{80:020d}").unlink()
    with StoreView.open(root) as view:
        (queue,) = [queue for queue in plan_queues(view) if queue.topic == "A"]
    assert (queue.next_after, queue.fillers, queue.taken_away) == (12, 10, ())


def test_a_queue_of_which_only_the_name_of_a_file_is_left_begins_there(root: Path) -> None:
    put(root, Sample("b", "B"))
    folder = root / CONSUMEQUEUE / "A" / "0"
    folder.mkdir(parents=True)
    (folder / f"{8000:020d}").write_bytes(b"\x01" * 60 + bytes(8000 - 60))
    rebuild_all(root)
    assert [path.name for path in folder.iterdir()] == [f"{8000:020d}"]
    put(root, Sample("new", "A"))
    with StoreView.open(root) as view:
        assert view.queue_bounds("A", 0)[1] == 401


def test_a_record_with_a_wrong_queue_offset_takes_no_place_of_another(root: Path) -> None:
    places = put(root, *(Sample(f"m{number}", "A") for number in range(6)))
    with (root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(places[2] + 20)
        file.write((1 << 40 | 2).to_bytes(8, "big"))
    (root / CONSUMEQUEUE / "A" / "0" / f"{0:020d}").unlink()
    rebuild_all(root)
    with StoreView.open(root) as view:
        assert ids(view) == ["m0", "m1", "m3", "m4", "m5"]
        assert view.max_offset_in_queue("A", 0) == 6


@pytest.mark.parametrize("with_page", [False, True])
def test_readers_that_are_there_see_the_new_files(root: Path, with_page: bool) -> None:
    put(root, *(Sample(f"m{number}", "A") for number in range(5)))
    with (root / CONSUMEQUEUE / "A" / "0" / f"{0:020d}").open("r+b") as file:
        file.seek(20)
        file.write(bytes(8) + b"\0\0\0\1" + bytes(8))
    shared = root / "rmqctl" / "shared"
    if not with_page:
        shared.unlink()
    with StoreView.open(root) as view:
        assert view.has_shared_state == with_page
        assert ids(view) == ["m0", "m2", "m3", "m4"]
        rebuild_all(root)
        assert ids(view) == [f"m{number}" for number in range(5)]
        put(root, Sample("m5", "A"))
        view.joins_writers()
        assert ids(view) == [f"m{number}" for number in range(6)]


def test_what_a_killed_writer_left_is_no_obstacle(root: Path) -> None:
    put(root, *(Sample(f"m{number}", "A") for number in range(5)))
    (root / "abort").touch()
    (root / CONSUMEQUEUE / "A" / "0" / f"{0:020d}").unlink()
    rebuild_all(root)
    assert (root / "abort").exists()  # another writer's: recovery is still to come
    with MessageStore.open(root) as store:
        assert store.recovery is not None
        assert ids(store.view) == [f"m{number}" for number in range(5)]


def test_one_queue_can_be_made_by_itself_without_touching_the_store(
    root: Path, tmp_path: Path
) -> None:
    put(root, Sample("a", "A"), Sample("b", "A", 1), Sample("c", "A"))
    before = units(root)
    (root / CONSUMEQUEUE / "A" / "0" / f"{0:020d}").unlink()
    with StoreView.open(root) as view:
        queue = rebuild_queue(view, "A", 0, tmp_path / "out")
    assert (queue.made, queue.units_after, queue.log_from) == ((f"{0:020d}",), 2, 0)
    assert (tmp_path / "out" / "A" / "0" / f"{0:020d}").read_bytes() == before
    assert not list((root / CONSUMEQUEUE / "A" / "0").iterdir())
