"""The order of marks and redrives is that of the journal, whatever the clocks said."""

from __future__ import annotations

import pytest

from storage.configs.journal import ACK, REDRIVE, SETTLE, Journal
from storage.configs.journal_marks import (
    Journalled,
    TimedDeletion,
    TimedMark,
    TimedRedrive,
    journalled_marks,
    marks_before_sends,
)

TOPIC = "%DLQ%g"
BEGAN = TimedRedrive(1000, "R1")


def marked(at: int, offset: int = 5, run: str | None = None) -> TimedMark:
    return TimedMark(at, TOPIC, 0, (True, offset, offset + 1), run)


def removed(at: int, offset: int = 5, queue_id: int = 0, topic: str = TOPIC) -> TimedMark:
    return TimedMark(at, topic, queue_id, (False, offset, offset + 1))


def before(marks: list[Journalled], sent_at: int, *, handled: bool = False) -> int:
    """How many of the marks were made before R1 sent the dead letter at offset 5 of queue 0."""
    places = [(0, 5)] if handled else []
    return marks_before_sends(marks, TOPIC, "R1", {(0, 5): sent_at}, places)[0, 5]


def test_the_journal_names_redrives_and_what_was_set_late_for_them(tmp_path):
    journal = Journal(tmp_path)
    head = {"group": "g", "topic": TOPIC, "old": None}
    handled = {"handled": {"0": [[5, 6]]}}
    journal.append({**head, "what": ACK, "new": handled}, 30)
    journal.append({**head, "what": REDRIVE, "new": {"run": "R1", "messages": 1}}, 10)
    journal.append({**head, "what": REDRIVE, "new": None}, 10)
    journal.append({**head, "what": SETTLE, "new": {"run": "R1", **handled}}, 40)
    journal.append({"topic": TOPIC, "old": {}, "new": None}, 20)
    assert [*journalled_marks(journal)] == [
        marked(30),
        TimedRedrive(30, "R1"),
        marked(40, run="R1"),
        TimedDeletion(40, TOPIC),
    ]


@pytest.mark.parametrize("sent_at", [1, 1500, 9000])
def test_what_was_removed_before_a_run_was_removed_before_it_sent(sent_at):
    marks: list[Journalled] = [marked(500), removed(600), BEGAN]
    assert before(marks, sent_at) == 2


@pytest.mark.parametrize("sent_at", [1, 1500, 9000])
@pytest.mark.parametrize("late", [[], [marked(1100, run="R1")]], ids=["marked", "settled"])
@pytest.mark.parametrize("again", [[], [TimedRedrive(1050, "R1")]], ids=["once", "resumed"])
def test_what_was_removed_after_a_run_began_was_marked_by_it(sent_at, late, again):
    marks: list[Journalled] = [BEGAN, *late, *again, removed(1200), marked(1300), removed(1400)]
    assert before(marks, sent_at) == 0


def test_a_mark_that_may_be_another_one_is_ordered_by_its_time():
    assert before([BEGAN, removed(1200)], 1500, handled=True) == 2
    assert before([BEGAN, removed(1200)], 1100, handled=True) == 0
    assert before([BEGAN, marked(1100), removed(1200)], 1500) == 3
    assert before([BEGAN, marked(1100), removed(1200)], 1150) == 0
    assert before([BEGAN, marked(1100, run="R2"), removed(1200)], 1500) == 3


def test_a_mark_that_is_removed_again_is_that_of_the_run():
    assert before([BEGAN, removed(1200), removed(1300)], 1500, handled=True) == 2


def test_marks_of_others_and_after_the_deletion_of_the_topic_do_not_count():
    others = [
        removed(1200, offset=4),
        removed(1200, offset=6),
        removed(1200, queue_id=1),
        removed(1200, topic="%DLQ%other"),
    ]
    assert before([BEGAN, *others], 1500, handled=True) == 0
    deletion = TimedDeletion(1100, TOPIC)
    assert before([BEGAN, deletion, removed(1200)], 1500, handled=True) == 0
    elsewhere = TimedDeletion(1100, "%DLQ%other")
    assert before([BEGAN, elsewhere, removed(1200)], 1500, handled=True) == 3


@pytest.mark.parametrize(("sent_at", "expected"), [(499, 0), (500, 0), (501, 1), (700, 2)])
def test_without_an_entry_of_the_run_times_count(sent_at, expected):
    marks: list[Journalled] = [marked(500), removed(600), TimedRedrive(700, "R2")]
    assert before(marks, sent_at) == expected
