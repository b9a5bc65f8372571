"""Changes and their authors through the library; no command line."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import audit, offsets, topics
from rmqctl.admin.changes import journal_note
from rmqctl.errors import NotFound
from storage.configs.progress import ProgressFile
from tests.support.copies import copy_store

NOTE = {**journal_note("offset reset", reason="the backlog is stale"), "user": "ann"}

LATER = 1 << 50


@pytest.fixture
def changed(orders):
    """Two changes: group g moved to the end of both queues of orders, orders made read only."""
    with EmbeddedBroker.open(orders) as broker:
        choice = [offsets.TopicChoice("orders")]
        move = offsets.reset(broker.view, broker, offsets.to_latest, groups=["g"], topics=choice)
        move.apply(NOTE)
        topics.alter(broker.view, ["orders"], {"perm": 4}).apply(journal_note("topic alter"))
    return orders


def test_changes_are_listed_with_their_authors(changed, ask):
    view = ask(changed).view
    *_, first, second, setting = audit.list_changes(view)
    assert [(row.queue_id, row.old_offset, row.new_offset) for row in (first, second)] == [
        (0, 5, 10),
        (1, None, 5),
    ]
    assert (first.user, first.reason, first.applied) == ("ann", "the backlog is stale", True)
    assert (setting.change_id, setting.topic, setting.queue_id) == (3, "orders", None)
    assert list(audit.list_changes(view, LATER)) == []


def test_one_change_is_described(changed, ask):
    view = ask(changed).view
    move = audit.describe(view, 2)
    assert [(row.group, row.queue_id, row.new_offset) for row in move.moves or ()] == [
        ("g", 0, 10),
        ("g", 1, 5),
    ]
    assert (move.command, move.undone_by, move.what) == ("offset reset", None, None)
    assert audit.describe(view, 3).moves is None
    with pytest.raises(NotFound, match="has no change 4: it has changes 1 to 3"):
        audit.describe(view, 4)


def test_the_history_of_a_group_has_its_moves_only(changed, ask):
    view, broker = ask(changed)
    rows = list(audit.history(view, broker, ["g"], ["orders"]))
    assert [(row.queue_id, row.new_offset, row.user) for row in rows] == [
        (0, 10, "ann"),
        (1, 5, "ann"),
    ]
    assert list(audit.history(view, broker, since=LATER)) == []
    with pytest.raises(NotFound, match="group h has neither progress nor a history"):
        audit.history(view, broker, ["h"])
    with pytest.raises(NotFound, match="topic nope does not exist"):
        audit.history(view, broker, topics=["nope"])


def test_a_move_without_an_entry_is_in_the_history(changed, ask):
    ProgressFile(changed).move({("orders@g", 0): 3})  # as a program without our journal does
    view, broker = ask(changed)
    *_, last = audit.history(view, broker, ["g"])
    assert (last.change_id, last.user, last.old_offset, last.new_offset) == (None, None, 10, 3)
    assert last.note == "no journal entry; since change 2"


@pytest.mark.slow
def test_the_history_is_shown_where_offsets_cannot_be_read(changed, ask, tmp_path):
    copy = copy_store(changed, tmp_path / "copy")
    view, broker = ask(copy)
    ProgressFile(copy).path.write_bytes(b"x")
    warnings: list[str] = []
    rows = list(audit.history(view, broker, warn=warnings.append))
    assert [row.applied for row in rows] == [None, None]
    assert "offsets.log is damaged" in warnings[0]
