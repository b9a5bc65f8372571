"""The least offset of a group, by the messages that it is done with."""

from broker.offset_recovery.contiguous import ConsumedOffsets, ContiguousOffsets

PLACE = ("g", "T", 0)
SETTLE = 100


def done(offset, at, **more):
    return ConsumedOffsets(PLACE, offset, at, at, f"id{offset}@{at}", "retry", **more)


def reached(events, known=0, since=-1):
    found = ContiguousOffsets(events, {PLACE: since}).reached(PLACE, known, SETTLE)
    return None if found is None else found.offset


def test_what_is_done_without_a_gap_was_committed_by_who_lives_on():
    events = [done(0, 10), done(1, 20), done(2, 30), done(7, 130)]
    assert reached(events) == 3
    assert reached(events, known=1) == 3


def test_a_message_that_may_be_in_work_holds_up_all_behind_it():
    events = [done(0, 10), done(2, 20), done(3, 30), done(9, 1_000)]
    assert reached(events) == 1
    assert reached(events, known=2) == 4
    assert reached(events, known=5) is None


def test_who_was_seen_no_more_may_have_died_before_his_commit():
    assert reached([done(0, 10), done(1, 20), done(2, 109)]) is None
    assert reached([done(0, 10), done(1, 20), done(2, 110)]) == 1
    assert reached([done(0, 10), done(1, 20), done(2, 120)]) == 2


def test_a_message_that_came_again_tells_that_the_later_ones_come_again_too():
    first = [done(0, 10), done(1, 20), done(2, 30)]
    assert reached([*first, done(1, 200), done(9, 1_000)]) == 2
    assert reached([*first, done(0, 200), done(9, 1_000)]) == 1
    assert reached([*first, done(0, 200), done(1, 210), done(9, 1_000)]) == 2


def test_a_message_that_was_only_begun_is_not_done():
    assert reached([done(0, 10, done=False), done(9, 1_000)]) is None
    begun_again = done(0, 500, done=False, again=True)
    assert reached([done(0, 10), done(1, 20), begun_again, done(9, 1_000)]) is None


def test_what_others_do_to_retries_is_no_sign_of_life():
    assert reached([done(0, 10), done(5, 1_000, alive=False)]) is None


def test_what_was_before_a_move_does_not_count():
    events = [done(0, 10), done(1, 20), done(5, 500), done(6, 700)]
    assert reached(events, known=5, since=400) == 6
    assert reached(events, known=0, since=400) is None
    assert reached(events, known=0, since=15) is None


def test_the_furthest_message_is_told_though_it_is_no_bound():
    finished = ContiguousOffsets([done(16, 10), done(3, 20)], {})
    found = finished.handed(PLACE)
    assert found is not None
    assert found.offset == 16
    assert finished.reached(PLACE, 0, SETTLE) is None
