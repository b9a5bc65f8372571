"""Which of several pieces of evidence of lost progress counts."""

import pytest

from broker.offset_recovery.evidence import Bound, Evidence, EvidenceChange, Source, best_sight

BACK = EvidenceChange(1_000, old=50, new=10, change_id=7, generation=1)


def sight(offset, source, at=None, generation=None):
    return Evidence(offset, source, "there", Bound.AT_LEAST, at, generation)


def best(*sights, turns=()):
    found = best_sight(sights, turns)
    return None if found is None else (found.offset, found.source)


def test_the_largest_offset_counts_where_no_move_was_made():
    assert best(sight(3, Source.BAK), sight(5, Source.SAMPLE, 10)) == (5, Source.SAMPLE)
    assert best() is None


@pytest.mark.parametrize(
    ("seen", "counts"),
    [
        (sight(40, Source.BAK), False),  # perhaps of before the move
        (sight(51, Source.BAK), True),  # more than it ever was before
        (sight(40, Source.SAMPLE, 900), False),
        (sight(40, Source.SAMPLE, 20_000), False),  # may have been read before, noted after
        (sight(40, Source.SAMPLE, 40_000), True),
        (sight(40, Source.NOTE, generation=0), False),
        (sight(40, Source.NOTE, generation=1), True),
        (sight(40, Source.FILE), True),  # a move writes it
    ],
)
def test_what_was_seen_before_a_reset_does_not_count(seen, counts):
    assert best(seen, turns=[BACK]) == ((seen.offset, seen.source) if counts else (10, "journal"))


def test_a_move_that_may_not_have_been_done_leaves_the_lesser_bound():
    forward = BACK._replace(old=10, new=50, certain=False)
    back = BACK._replace(certain=False)
    assert best(turns=[forward]) == (10, Source.JOURNAL)
    assert best(turns=[back]) == (10, Source.JOURNAL)
    assert best(sight(60, Source.BAK), turns=[back]) == (10, Source.JOURNAL)
    assert best(turns=[forward._replace(old=None)]) is None


def test_deleted_progress_stays_deleted():
    deleted = BACK._replace(new=None)
    assert best(sight(50, Source.BAK), sight(50, Source.SAMPLE, 900), turns=[deleted]) is None


def test_a_drop_that_samples_saw_counts_as_a_move():
    drop = EvidenceChange(1_000, old=50, new=10)
    assert best(sight(10, Source.SAMPLE, 1_000), sight(45, Source.BAK), turns=[drop]) == (
        10,
        Source.SAMPLE,
    )
