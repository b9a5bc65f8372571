"""The health of a group, observation by observation."""

import pytest

from analytics.lag.health import PATIENCE_MS, Health, Observation, judge, worst
from analytics.lag.trend import unchanged_since

NOW = 1_700_000_000_000
S = 1000
OLD = NOW - 3600 * S


def look(seconds_ago, committed, end):
    return Observation(NOW - seconds_ago * S, committed, end)


def word(*looks, oldest=OLD, members=False, low=0):
    *earlier, now = looks
    changes = [(look.at, look.committed_offset) for look in earlier]
    firsts = [c for n, c in enumerate(changes) if not n or changes[n - 1][1] != c[1]]
    since = unchanged_since(firsts, now.committed_offset, now.at)
    present = now.at, now.committed_offset, now.max_offset
    return judge(*present, since, lambda: earlier, low, oldest, members=members)


@pytest.mark.feature(49)
def test_nothing_unread_is_fine_whatever_happened_before():
    assert word(look(0, 9, 9), oldest=None) is Health.OK
    assert word(look(500, 9, 9), look(0, 9, 9), oldest=None) is Health.OK


@pytest.mark.feature(48, 49)
def test_who_has_looked_once_only_does_not_know():
    assert word(look(0, 5, 9)) is Health.UNKNOWN
    assert word(look(0, 5, 9), oldest=None) is Health.UNKNOWN


@pytest.mark.feature(49)
def test_a_message_that_was_stored_a_moment_ago_makes_no_group_late():
    """Burrow's false alarms: an idle topic gets a message after hours without commits."""
    fresh = NOW - PATIENCE_MS + 1
    assert word(look(3600, 5, 5), look(0, 5, 6), oldest=fresh) is Health.OK
    assert word(look(0, 5, 6), oldest=fresh) is Health.OK
    assert word(look(3600, 5, 5), look(0, 5, 6), oldest=fresh - 1) is not Health.OK


@pytest.mark.feature(49)
@pytest.mark.parametrize(("members", "expected"), [(True, Health.STALL), (False, Health.STOP)])
def test_a_minute_without_a_step_is_a_stall_with_members_and_a_stop_without(members, expected):
    still = [look(120, 5, 9), look(30, 5, 12), look(0, 5, 15)]
    assert word(*still, members=members) is expected
    moved = [look(120, 4, 9), look(59, 5, 12), look(0, 5, 15)]
    assert word(*moved, members=members) not in {Health.STALL, Health.STOP}


@pytest.mark.feature(49)
def test_the_minute_begins_when_there_was_something_to_read():
    """The offset is the same for an hour, but the message came 61 or 59 s ago."""
    looks = [look(3600, 5, 5), look(0, 5, 6)]
    assert word(*looks, oldest=NOW - 61 * S) is Health.STOP
    assert word(*looks, oldest=NOW - 59 * S) is Health.OK


@pytest.mark.feature(49)
def test_progress_that_went_back_is_a_rewind_until_it_has_come_where_it_was():
    back = [look(300, 90, 100), look(50, 10, 100), look(20, 30, 100), look(0, 50, 100)]
    assert word(*back) is Health.REWIND
    assert word(*back[:-1], look(0, 90, 100)) is Health.OK


@pytest.mark.feature(49)
def test_who_moves_and_never_gets_nearer_is_warned_of():
    end = [look(120, 10, 50), look(60, 20, 70), look(30, 25, 80), look(0, 30, 90)]
    assert word(*end) is Health.WARN
    level = [look(120, 10, 50), look(60, 20, 60), look(30, 25, 65), look(0, 30, 70)]
    assert word(*level) is Health.WARN


@pytest.mark.feature(49)
def test_who_is_behind_and_gets_nearer_is_fine():
    assert word(look(120, 10, 500), look(60, 100, 510), look(0, 200, 520)) is Health.OK
    assert word(look(20, 10, 500), look(0, 200, 520)) is Health.OK


def test_too_few_looks_are_no_trend():
    assert word(look(70, 10, 50), look(0, 20, 70)) is Health.UNKNOWN
    assert word(look(30, 10, 50), look(20, 12, 60), look(0, 20, 90)) is Health.UNKNOWN
    assert word(look(59, 10, 50), look(20, 12, 60), look(0, 20, 90)) is Health.UNKNOWN
    assert word(look(60, 10, 50), look(20, 12, 60), look(0, 20, 90)) is Health.WARN, "two steps"
    assert word(look(60, 10, 50), look(20, 10, 60), look(0, 20, 90)) is Health.UNKNOWN, "one"


@pytest.mark.feature(48)
def test_without_progress_nothing_is_known_unless_there_is_nothing_to_read():
    assert word(look(0, None, 5)) is Health.UNKNOWN
    assert word(look(0, None, 0), oldest=None) is Health.OK
    assert word(look(0, None, 7), low=7, oldest=None) is Health.OK


def test_progress_beyond_the_end_is_warned_of():
    assert word(look(0, 12, 9), oldest=None) is Health.WARN


def test_the_worst_word_stands_for_all():
    words = list(Health)
    assert [w.rank for w in words] == sorted(w.rank for w in words)
    assert worst(words) is Health.STOP
    assert worst([Health.WARN, Health.OK, Health.UNKNOWN]) is Health.WARN
    assert worst([]) is Health.OK


def test_the_words_are_those_that_rows_show():
    assert [*Health] == ["OK", "UNKNOWN", "WARN", "REWIND", "STALL", "STOP"]


@pytest.mark.parametrize(("committed", "lag"), [(0, 9), (8, 1), (9, 0), (10, None), (None, None)])
def test_an_observation_has_a_lag_up_to_the_end(committed, lag):
    assert Observation(NOW, committed, 9).lag == lag


def test_a_group_that_was_once_at_the_end_is_fine():
    assert word(look(120, 10, 10), look(60, 20, 30), look(0, 30, 50)) is Health.OK
    assert word(look(120, 10, 11), look(60, 20, 30), look(0, 30, 50)) is Health.WARN


def test_a_message_of_an_unknown_time_is_not_young():
    answer = judge(PATIENCE_MS, 5, 9, PATIENCE_MS, list, 0, None, members=False)
    assert answer is Health.UNKNOWN
