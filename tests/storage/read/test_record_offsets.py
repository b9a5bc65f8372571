"""Units give the begins of records, or say that these are unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.files.read_files import StoreFiles
from storage.log.raw_bytes import LogBytes
from storage.log.walk import LogWalk, StretchKind
from storage.read.record_offsets import record_starts
from storage.readonly import StoreView
from tests.support import golden, golden_samples
from tests.support.hand_made import HandMade


def begins(view: StoreView) -> list[tuple[int, StretchKind]]:
    log = StoreFiles(view.root, view.config).log
    walk = LogWalk(log, view.log_min_offset(), limit=view.log_max_offset(), search_all=True)
    found = []
    while (stretch := walk.next()) is not None:
        start = stretch.start
        for size in stretch.sizes:
            found.append((start, stretch.kind))
            start += size
    return found


@pytest.mark.slow
@golden_samples.SOME_READ_OTHERWISE
def test_they_are_those_of_a_walk_wherever_they_are_told(name: str) -> None:
    told = 0
    with StoreView.open(golden.store(name)) as view:
        log = StoreFiles(view.root, view.config).log
        pieces = begins(view)
        starts = [start for start, kind in pieces if kind is StretchKind.RECORDS]
        end_of_log = view.log_max_offset()
        for begin in starts[:: max(1, len(starts) // 25)]:
            for size in (500, 20_000, log.file_size):
                end = min(begin + size, begin - begin % log.file_size + log.file_size, end_of_log)
                found = record_starts(view, log, begin, end, end_of_log)
                if found is not None:
                    told += 1
                    inside = [piece for piece in pieces if begin <= piece[0] < end]
                    assert found.tolist() == [
                        start for start, kind in inside if kind is not StretchKind.BLANK
                    ]
                    # a damaged record has a unit too, if only its body is damaged
                    assert all(kind is not StretchKind.LOST for _, kind in inside)
    missing = ("queue-missing", "hole", "retention", "bad-crc-middle", "no-blank")
    assert told or any(word in name for word in missing)


def test_a_record_without_a_unit_leaves_a_gap(tmp_path: Path) -> None:
    for without in range(3):  # the last one is rebuilt when the store is opened
        made = HandMade()
        for number in range(4):
            made.put(queue_id=number % 2, body=b"%d" % number, unit=number != without)
        (folder := tmp_path / str(without)).mkdir()
        with StoreView.open(made.write(folder)) as view:
            log = StoreFiles(view.root, view.config).log
            assert record_starts(view, log, 0, made.log_end, made.log_end) is None


def test_bytes_are_those_of_the_files_and_end_with_them(tmp_path: Path) -> None:
    made = HandMade()
    for number in range(30):
        made.put(body=b"%d" % number)
    with StoreView.open(made.write(tmp_path)) as view:
        log = StoreFiles(view.root, view.config).log
        buffer = bytearray(300)
        with LogBytes(log, buffer) as reader:
            assert reader.read(1000, 300) == 24
            assert buffer[:24] == made.log[1000:1024]
            assert reader.read(1024, 300) == 300
            assert buffer == made.log[1024:1324]
            assert reader.read(2048, 10) == 10
            assert reader.read(1 << 20, 300) == 0
