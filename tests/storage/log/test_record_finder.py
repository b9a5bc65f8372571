"""From any byte of a log to the record that holds it, whatever the bytes are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings, strategies as st

from storage.files.read_files import StoreFiles
from storage.format.record import decode_record, encode_record
from storage.log.record_finder import RecordFinder
from storage.log.walk import LogWalk, StretchKind
from storage.readonly import StoreView
from tests.support import golden
from tests.support.hand_made import HOST, HandMade


def finder_of(view: StoreView) -> RecordFinder:
    log = StoreFiles(view.root, view.config).log
    return RecordFinder(log, view.log_max_offset(), view.unit, (4 << 20) + (64 << 10))


def walked(view: StoreView) -> list[tuple[int, int, StretchKind]]:
    """Begin, end and kind of everything in the log, by walking all of it."""
    log = StoreFiles(view.root, view.config).log
    walk = LogWalk(log, view.log_min_offset(), limit=view.log_max_offset(), search_all=True)
    pieces = []
    while (stretch := walk.next()) is not None:
        start = stretch.start
        for size in stretch.sizes:
            pieces.append((start, start + size, stretch.kind))
            start += size
    return pieces


@pytest.mark.parametrize("name", golden.names())
def test_each_place_of_a_golden_log_leads_to_what_a_walk_finds_there(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        finder = finder_of(view)
        pieces = walked(view)
        for start, end, kind in pieces[:: max(1, len(pieces) // 300)]:
            for offset in (start, start + 5, (start + end) // 2, end - 1):
                found = finder.containing(offset)
                if kind is StretchKind.BLANK:
                    assert found is None
                else:
                    assert found is not None
                    assert (found.start, found.end) == (start, end)
                    assert (found.message is not None) == (kind is StretchKind.RECORDS)


@pytest.mark.parametrize("name", ["basic-4.9", "torn-bad-crc-middle-4.9", "small-files-4.9"])
def test_going_backwards_gives_the_same(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        finder = finder_of(view)
        pieces = walked(view)
        for start, end, kind in reversed(pieces[:: max(1, len(pieces) // 100)]):
            found = finder.containing(end - 1)
            assert (found is None) == (kind is StretchKind.BLANK)
            assert found is None or found.start == start


def record_that_lies(place: int, body: bytes, queue_offset: int) -> bytes:
    """A whole record whose own log offset is ``place``."""
    return encode_record(
        topic="T",
        queue_id=0,
        body=body,
        properties=b"",
        queue_offset=queue_offset,
        physical_offset=place,
        store_timestamp=1_700_000_000_500,
        born_timestamp=1,
        born_host=HOST,
        store_host=HOST,
    )


@pytest.mark.parametrize("unit", [True, False])
def test_a_record_in_a_body_is_no_record_even_if_it_knows_its_place(
    tmp_path: Path, unit: bool
) -> None:
    made = HandMade()
    made.put(body=b"first")
    fake = record_that_lies(made.log_end + 88, b"word", queue_offset=1)
    outer = made.put(body=fake + b" word", unit=unit)
    made.put(body=b"last")
    with StoreView.open(made.write(tmp_path)) as view:
        for offset in range(outer.commitlog_offset, outer.commitlog_offset + outer.size):
            found = finder_of(view).containing(offset)
            assert found is not None
            assert (found.start, found.size) == (outer.commitlog_offset, outer.size)


def test_a_size_that_claims_whole_records_hides_none_of_them(tmp_path: Path) -> None:
    """The beginning of a longer record over a shorter one: its body is whole, its size is not."""
    made = HandMade()
    shorter = made.put(body=b"shorter", unit=False)
    claimed = [made.put(body=b"claimed %d" % number) for number in range(3)]
    made.put(body=b"last")
    start = shorter.commitlog_offset
    longer = encode_record(
        topic="U",
        queue_id=0,
        body=b"longer",
        properties=bytes(claimed[1].commitlog_offset + 20 - start),
        queue_offset=0,
        physical_offset=start,
        store_timestamp=1_700_000_000_000,
        born_timestamp=1,
        born_host=HOST,
        store_host=HOST,
    )
    assert claimed[1].commitlog_offset < start + len(longer) < claimed[2].commitlog_offset + 200
    made.log[start : start + shorter.size] = longer[: shorter.size]
    with StoreView.open(made.write(tmp_path)) as view:
        for finder in (finder_of(view), None):
            for message in claimed:
                for offset in (0, 30, message.size - 1):
                    found = (finder or finder_of(view)).containing(
                        message.commitlog_offset + offset
                    )
                    assert found is not None
                    assert found.message is not None
                    assert found.message.body == message.body
        before = finder_of(view).containing(start + 90)
        assert before is not None
        assert (before.start, before.end, before.message) == (
            start,
            claimed[0].commitlog_offset,
            None,
        )


def test_records_without_units_are_found_by_walking(tmp_path: Path) -> None:
    """Prepared messages of old brokers; here a hundred in a row."""
    made = HandMade()
    places = [made.put(body=b"%d" % number, unit=number % 50 == 0) for number in range(100)]
    with StoreView.open(made.write(tmp_path)) as view:
        finder = finder_of(view)
        for stored in places:
            found = finder.containing(stored.commitlog_offset + 90)
            assert found is not None
            assert found.message is not None
            assert found.message.body == stored.body


@pytest.mark.parametrize("name", ["basic-4.9", "small-files-4.9", "torn-bad-crc-middle-4.9"])
def test_parts_together_hold_each_record_once(name: str) -> None:
    with StoreView.open(golden.store(name)) as view:
        pieces = [piece[:2] for piece in walked(view) if piece[2] is not StretchKind.BLANK]
        size, end = view.config.mapped_file_size_commit_log, view.log_max_offset()
        for step in (997, 40_000):
            finder = finder_of(view)
            found = []
            for start in range(view.log_min_offset(), end, size):
                part_end = min(end, start - start % size + size)
                for part in range(start, part_end, step):
                    found += [
                        (record.start, record.end)
                        for record in finder.records(part, min(part + step, part_end))
                    ]
            assert found == pieces


@settings(max_examples=60, deadline=None)
@example([b"", bytes(7), bytes(12)], 230, b"\x10")  # an IPv6 host, and so no body
@given(
    st.lists(st.binary(max_size=120), min_size=1, max_size=12),
    st.integers(0, 1500),
    st.binary(min_size=1, max_size=6),
)
@pytest.mark.slow
def test_damage_anywhere_gives_no_wrong_message(
    tmp_path_factory: pytest.TempPathFactory, bodies: list[bytes], place: int, damage: bytes
) -> None:
    made = HandMade()
    stored = {message.commitlog_offset: message for message in (made.put(body=b) for b in bodies)}
    place %= len(made.log)
    made.log[place : place + len(damage)] = damage[: len(made.log) - place]
    with StoreView.open(made.write(tmp_path_factory.mktemp("s"))) as view:
        finder = finder_of(view)
        for offset in range(0, view.log_max_offset(), 7):
            found = finder.containing(offset)
            if found is not None and found.message is not None:
                assert found.start <= offset < found.end
                assert found.message.stored_body == stored[found.start].body
                raw = bytes(made.log[found.start : found.end])
                assert decode_record(raw).stored_body == found.message.stored_body
