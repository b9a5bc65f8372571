"""Notes of delayed delivery: each level has its slot, and damage says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.configs.delivery_notes import DeliveryNote, DeliveryNotes

SLOT = 32


@pytest.fixture
def notes(tmp_path: Path) -> DeliveryNotes:
    (tmp_path / "rmqctl").mkdir()
    return DeliveryNotes(tmp_path)


def test_each_level_has_its_note(notes: DeliveryNotes) -> None:
    assert notes.read() == {}
    written = {level: DeliveryNote(level * 10, level * 1000) for level in (1, 2, 18, 1024)}
    for level, note in written.items():
        notes.write(level, note)
    assert notes.read() == written
    notes.write(2, DeliveryNote(0, 0))
    assert notes.read() == written | {2: DeliveryNote(0, 0)}
    assert notes.path.read_bytes()[:SLOT] == bytes(SLOT)
    notes.close()


def test_a_level_beyond_the_last_slot_is_not_noted(notes: DeliveryNotes) -> None:
    notes.write(1025, DeliveryNote(1, 1))
    assert not notes.path.exists()
    notes.close()


def test_a_changed_byte_takes_its_note_away_and_no_other(notes: DeliveryNotes) -> None:
    for level in (1, 2, 3):
        notes.write(level, DeliveryNote(level, level))
    notes.close()
    data = notes.path.read_bytes()
    for position in range(2 * SLOT, 2 * SLOT + 20):
        changed = bytearray(data)
        changed[position] ^= 0x80
        notes.path.write_bytes(changed)
        assert set(notes.read()) == {1, 3}, position


def test_a_note_below_zero_says_nothing(notes: DeliveryNotes) -> None:
    notes.write(1, DeliveryNote(-1, 5))
    notes.write(2, DeliveryNote(5, -1))
    notes.write(3, DeliveryNote(0, 0))
    assert set(notes.read()) == {3}
    notes.close()


def test_a_file_that_was_cut_has_the_notes_that_are_whole(notes: DeliveryNotes) -> None:
    for level in (1, 2):
        notes.write(level, DeliveryNote(level, level))
    notes.close()
    data = notes.path.read_bytes()
    for length, levels in (
        (2 * SLOT + 20, {1, 2}),
        (2 * SLOT + 19, {1}),
        (SLOT + 19, set()),
        (0, set()),
    ):
        notes.path.write_bytes(data[:length])
        assert set(notes.read()) == levels, length


def test_it_is_opened_again_after_it_was_closed(notes: DeliveryNotes) -> None:
    notes.write(1, DeliveryNote(1, 1))
    notes.close()
    notes.close()
    notes.write(1, DeliveryNote(2, 2))
    assert notes.read() == {1: DeliveryNote(2, 2)}
    notes.close()


def test_without_a_folder_there_are_no_notes(tmp_path: Path) -> None:
    (tmp_path / "rmqctl").write_bytes(b"")
    assert DeliveryNotes(tmp_path).read() == {}
    assert DeliveryNotes(tmp_path / "none").read() == {}
