"""Marks of handled dead letters: a cursor and ranges beyond it."""

import random

import pytest

from storage.configs.dlq_acks import AckedOffsets, DlqAcksFile, Marks
from storage.errors import CorruptFileError, StoreVersionError


def test_marks_say_the_same_as_a_set_of_offsets():
    chance = random.Random(7)
    for _ in range(300):
        marks = AckedOffsets()
        model: set[int] = set()
        for _ in range(12):
            low = chance.randrange(30)
            high = low + chance.randrange(8)
            if chance.random() < 0.6:
                marks, model = marks.with_marks([(low, high)]), model | set(range(low, high))
            else:
                marks, model = marks.without_marks([(low, high)]), model - set(range(low, high))
        assert {offset for offset in range(50) if offset in marks} == model
        assert marks.within(5, 20) == len(model & set(range(5, 20)))
        assert marks.cursor == next(n for n in range(99) if n not in model)
        ends = [marks.cursor, *(end for pair in marks.beyond for end in pair)]
        assert ends == sorted(set(ends)), "ranges touch"


def test_marks_are_read_by_every_other_reader(tmp_path):
    file = DlqAcksFile(tmp_path)
    assert file.read("%DLQ%g") == {}
    assert file.mark("%DLQ%g", {0: [(0, 3), (5, 6)]}) == {0: [(0, 3), (5, 6)]}
    file.mark("%DLQ%h", {1: [(2, 3)]})
    again = DlqAcksFile(tmp_path)
    assert again.read("%DLQ%g") == {0: AckedOffsets(3, ((5, 6),))}
    assert again.read("%DLQ%h") == {1: AckedOffsets(0, ((2, 3),))}


def test_only_what_changes_is_told_and_given(tmp_path):
    file = DlqAcksFile(tmp_path)
    told: list[Marks] = []
    file.mark("t", {0: [(0, 4)]}, told.append)
    assert file.mark("t", {0: [(2, 8)]}, told.append) == {0: [(4, 8)]}
    assert file.mark("t", {0: [(1, 3)]}, told.append) == {}
    assert file.unmark("t", {0: [(6, 99)], 1: [(0, 1)]}, told.append) == {0: [(6, 8)]}
    assert told == [{0: [(0, 4)]}, {0: [(4, 8)]}, {0: [(6, 8)]}]
    assert file.read("t")[0] == AckedOffsets(6)


def test_nothing_is_marked_if_the_journal_can_not_be_written(tmp_path):
    file = DlqAcksFile(tmp_path)

    def refuse(_):
        raise KeyError

    with pytest.raises(KeyError):
        file.mark("t", {0: [(0, 4)]}, refuse)
    assert file.read("t") == {}


def test_a_torn_file_is_an_error_and_a_newer_one_is_refused(tmp_path):
    file = DlqAcksFile(tmp_path)
    file.mark("t", {0: [(0, 4)]})
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-3])
    with pytest.raises(CorruptFileError, match="check sum"):
        file.read("t")
    from storage.configs.checksummed_json import seal

    file.path.write_bytes(seal({"version": 2, "topics": {}}))
    with pytest.raises(StoreVersionError):
        file.mark("t", {0: [(0, 1)]})
