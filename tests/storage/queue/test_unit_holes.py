"""Readers of a store whose queues have lost pages in the middle, before any writer comes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.read import scan_bounds
from storage.read.tag_filter import TagFilter
from storage.readonly import StoreView
from tests.support.copies import copy_store
from tests.support.every_instant import lose_page
from tests.support.samples import SMALL, Sample, batch, new_store, open_store, prepared

UNIT = 20
LOST = [
    pytest.param([(0, 10)], id="the first units"),
    pytest.param([(100, 150)], id="some in the middle"),
    pytest.param([(20, 21), (90, 200), (350, 399)], id="several holes"),
    pytest.param([(398, 402)], id="the end of one file and the begin of the next"),
    pytest.param([(0, 400)], id="a whole file"),
]


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store of 600 messages in a queue, whose writer was killed, after a reboot."""
    root = new_store(tmp_path / "store", SMALL)
    store = open_store(root, SMALL)
    for first in range(0, 600, 50):
        samples = [
            Sample(f"m-{i}", "T", tags="xyz"[i % 3], keys=("k",)) for i in range(first, first + 50)
        ]
        store.put(prepared(samples))
        store.put(prepared(batch(f"other-{first}", 5, "Other", (0, 1))))
    copy = tmp_path / "killed"
    copy_store(root, copy, ignore=shutil.ignore_patterns("bells"))
    store.close()
    lose_page(copy)
    return copy


def lose_units(root: Path, start: int, end: int) -> None:
    per_file = SMALL.mapped_file_size_consume_queue // UNIT
    for offset in range(start, end):
        first = offset - offset % per_file
        path = root / "consumequeue" / "T" / "0" / f"{first * UNIT:020d}"
        with path.open("r+b") as file:
            file.seek((offset - first) * UNIT)
            file.write(bytes(UNIT))


def read_all(view: StoreView, tags: TagFilter | None = None) -> list[str]:
    at, end = view.queue_bounds("T", 0)
    ids = []
    while at < end:
        got = view.get_message("T", 0, at, 32, tags=tags)
        ids += [message.msg_id for message in got.messages]
        at = got.next_begin_offset
    return ids


@pytest.mark.parametrize("lost", LOST)
def test_a_reader_has_units_that_a_power_loss_took_from_the_log(killed, lost):
    for start, end in lost:
        lose_units(killed, start, end)
    with StoreView.open(killed) as view:
        assert read_all(view) == [f"m-{i}" for i in range(600)]
        assert read_all(view, TagFilter.parse("y")) == [f"m-{i}" for i in range(1, 600, 3)]
        assert view.queue_bounds("T", 0) == (0, 600)
        column = view.read_column("T", 0, 0, 600)
        assert len(column) > 0
        times = [view.store_timestamp("T", 0, offset) for offset in range(600)]
        for offset in (0, 20, 120, 399, 450, 599):
            moment = times[offset]
            assert moment is not None
            assert view.offset_in_queue_by_time("T", 0, moment) in {
                number for number, time in enumerate(times) if time == times[offset]
            }


def test_a_reader_changes_nothing_of_such_a_store(killed):
    lose_units(killed, 100, 300)
    before = {path: path.read_bytes() for path in killed.rglob("*") if path.is_file()}
    with StoreView.open(killed) as view:
        assert len(read_all(view)) == 600
    assert {path: path.read_bytes() for path in killed.rglob("*") if path.is_file()} == before


def test_a_half_unit_in_front_of_a_lost_sector_is_not_believed(killed):
    torn = next(n for n in range(100, 200) if 492 < n * UNIT % 512 <= 500)
    lose_units(killed, torn + 1, torn + 30)
    path = killed / "consumequeue" / "T" / "0" / f"{0:020d}"
    with path.open("r+b") as file:  # its tags code, from the sector's end on
        file.seek(-(-(torn * UNIT) // 512) * 512)
        file.write(bytes(8))
    wanted = [f"m-{i}" for i in range(torn % 3, 600, 3)]
    tag = TagFilter.parse("xyz"[torn % 3])
    with StoreView.open(killed) as view:
        assert read_all(view, tag) == wanted
    open_store(killed, SMALL).close()
    with StoreView.open(killed) as view:
        assert read_all(view, tag) == wanted


def test_a_reader_that_stays_open_follows_the_writer_that_fills_the_hole(killed):
    lose_units(killed, 100, 300)
    with StoreView.open(killed) as view:
        assert len(read_all(view)) == 600
        store = open_store(killed, SMALL)
        store.put(prepared([Sample("new", "T")]))
        view.joins_writers()
        assert read_all(view)[-1] == "new"
        store.close()
        assert len(read_all(view)) == 601


def test_a_hole_that_costs_too_much_is_said_and_nothing_is_read(killed, monkeypatch):
    lose_units(killed, 100, 300)
    monkeypatch.setattr(scan_bounds, "MOST_REBUILT", 200)
    with (
        StoreView.open(killed) as view,
        pytest.raises(CorruptFileError, match="needs recovery"),
    ):
        read_all(view)


def test_light_queues_have_their_units_too(tmp_path):
    """A record with several units is still found by one of them where another is lost."""
    root = new_store(tmp_path / "store", SMALL)
    store = open_store(root, SMALL)
    for i in range(100):
        store.put(prepared([Sample(f"m-{i}", "T", light=("%LMQ%x", "U"))]))
    copy = copy_store(root, tmp_path / "killed", ignore=shutil.ignore_patterns("bells"))
    store.close()
    lose_page(copy)
    lose_units(copy, 40, 80)
    with StoreView.open(copy) as view:
        for queue in ("T", "U", "%LMQ%x"):
            assert view.queue_bounds(queue, 0) == (0, 100)
            units = [view.unit(queue, 0, number) for number in range(100)]
            assert (0, 0, 0) not in units
            assert None not in units
