"""offset undo: exactly as it was, all or nothing, and never over a later change."""

import json

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from storage.configs.consumer_offsets import load_consumer_offsets
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from tests.support.cli import run

DO = ("--execute", "--yes")


@pytest.fixture
def moved(orders):
    """Both queues went to their ends; gives the change's id."""
    result = run("offset", "reset", "-g", "g", "-t", "orders", "--to-latest", *DO)
    assert result.code == 0, result.err
    return last_change(orders)


def last_change(root):
    *_, last = Journal(root).entries()
    return last["change_id"]


@pytest.mark.slow
@pytest.mark.feature(78)
def test_progress_is_put_back_exactly(orders, offsets, moved):
    assert offsets() == {0: 10, 1: 5}
    plan = run("offset", "undo", moved, "-n", "-o", "json")
    assert plan.code == 0
    assert [(row["old_offset"], row["new_offset"]) for row in plan.json()] == [(10, 5), (5, None)]
    assert offsets() == {0: 10, 1: 5}, "a dry run"
    result = run("offset", "undo", moved, *DO)
    assert result.code == 0, result.err
    assert offsets() == {0: 5, 1: None}
    assert load_consumer_offsets(orders)["orders@g"] == {0: 5}


@pytest.mark.slow
def test_an_undoing_can_be_undone_and_the_history_says_so(orders, offsets, moved):
    assert run("offset", "undo", "--last", *DO, "--reason", "wrong topic").code == 0
    assert run("offset", "undo", "--last", *DO).code == 0
    assert offsets() == {0: 10, 1: 5}
    rows = {row["change_id"]: row for row in run("offset", "history", "-o", "json").json()}
    assert rows[moved]["undone_by"] == moved + 1
    assert (rows[moved + 1]["reason"], rows[moved + 1]["undone_by"]) == ("wrong topic", moved + 2)


@pytest.mark.slow
def test_what_was_consumed_since_is_no_obstacle(orders, offsets):
    assert run("offset", "reset", "-g", "g", "-t", "orders:0", "--to-earliest", *DO).code == 0
    generation = ProgressFile(orders).read().get("orders@g", 0).generation
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 3, generation)])
    [row] = run("offset", "undo", "--last", "-o", "json").json()
    assert (row["old_offset"], row["new_offset"], row["note"]) == (3, 5, "3 consumed since")
    assert run("offset", "undo", "--last", *DO).code == 0
    assert offsets()[0] == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("committed", "note"), [(None, None), (10, "has begun again since")], ids=str
)
def test_a_group_that_began_again_has_not_consumed_what_lies_before(orders, committed, note):
    assert run("offset", "delete", "g", "-t", "orders", "-Q", 0, *DO).code == 0
    generation = ProgressFile(orders).read().get("orders@g", 0).generation
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("h", [OffsetCommit("orders", 0, 1)])
        if committed is not None:
            broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, committed, generation)])
    [row] = run("offset", "undo", "--last", "-n", "-o", "json").json()
    assert (row["old_offset"], row["new_offset"], row["note"]) == (committed, 5, note)


@pytest.mark.slow
def test_a_queue_that_was_moved_again_is_left_alone_with_all_others(orders, offsets, moved):
    assert run("offset", "reset", "-g", "g", "-t", "orders:1", "--to-offset", "2", *DO).code == 0
    result = run("offset", "undo", moved, *DO)
    assert result.code == 6
    assert f"moved again since change {moved} (change {moved + 1})" in result.err
    assert offsets() == {0: 10, 1: 2}


@pytest.mark.slow
def test_it_is_undone_once(orders, offsets, moved):
    assert run("offset", "undo", moved, *DO).code == 0
    result = run("offset", "undo", moved, *DO)
    assert result.code == 6
    assert f"has been undone by change {moved + 1}" in result.err
    assert offsets() == {0: 5, 1: None}


def test_what_is_no_move_can_not_be_undone(orders):
    result = run("offset", "undo", 1, *DO)
    assert result.code == 7
    assert "did not move offsets" in result.err
    assert run("offset", "undo", 99, *DO).code == 3
    assert run("offset", "undo", "--last", *DO).code == 3, "nobody has moved anything"
    assert run("offset", "undo", *DO).code == 2
    assert run("offset", "undo", "1", "--last", *DO).code == 2
    assert run("offset", "undo", "first", *DO).code == 2


@pytest.mark.slow
def test_a_change_that_was_noted_but_not_done_is_not_undone(orders, moved):
    noted = {"group": "g", "topic": "orders", "queue_id": 0, "old": 10, "new": 0, "generation": 2}
    entry = {"command": "offset reset", "moves": [noted], "previous": moved}
    killed = Journal(orders).append(entry, 5)
    result = run("offset", "undo", killed, *DO)
    assert result.code == 7
    assert "never done" in result.err
    [row, *_] = run("offset", "undo", "--last", "-o", "json").json()
    assert row["old_offset"] == 10, "the last one that was done"
    history = run("offset", "history", "-o", "json").json()
    assert [row["applied"] for row in history if row["change_id"] == killed] == [False]


def test_an_offset_that_was_corrected_by_itself_can_be_undone(orders, offsets):
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("g", [OffsetCommit("orders", 0, 50)])
        broker.correct_consumer_offset("g", "orders", 0)
    assert offsets()[0] == 10
    assert run("offset", "undo", "--last", *DO).code == 0
    assert offsets()[0] == 50


@pytest.mark.feature(81)
def test_deleted_progress_comes_back(orders, offsets):
    result = run("offset", "delete", "-g", "g", "-t", "orders", "--yes", "-o", "json")
    assert result.code == 0, result.err
    assert [row["new_offset"] for row in result.json()] == [None]
    assert offsets() == {}
    assert "orders@g" not in load_consumer_offsets(orders)
    assert run("offset", "undo", "--last", *DO).code == 0
    assert offsets() == {0: 5, 1: None}


@pytest.mark.slow
@pytest.mark.feature(81)
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("-g", "raeders", "-t", "orders"), "group raeders does not exist in"),
        (("-t", "orders", "-t", "ordres"), "topic ordres does not exist in"),
        (("-t", "orders", "-Q", "0,99"), "--queue: orders has no queue 99, but 0, 1"),
        (("-t", "orders:0,99"), "topic orders has no queue 99: it has 0 to 1"),
        (("--all-topics", "-Q", "0,99"), "--queue: orders has no queue 99, but 0, 1"),
    ],
)
def test_what_does_not_exist_is_said_before_any_progress_is_deleted(orders, offsets, words, reason):
    before = offsets()
    for consent in ("--yes", "-n"):
        done = run("offset", "delete", "-g", "g", *words, consent)
        assert (done.code, done.out) == (3, "")
        assert reason in done.err
    assert offsets() == before


@pytest.mark.slow
@pytest.mark.feature(81)
def test_a_group_without_progress_is_no_obstacle_to_the_others(orders, offsets):
    assert run("group", "create", "idle").code == 0
    run("produce", "other", stdin=b"x\n")
    words = ("-g", "g", "-g", "idle", "-t", "orders", "-t", "other", "-Q", "0,1", "--yes")
    assert run("offset", "delete", *words).code == 0
    assert offsets() == {}


@pytest.mark.slow
@pytest.mark.feature(81)
def test_delete_narrows_to_topics_and_queues(orders, offsets):
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets(
            "g", [OffsetCommit("orders", 1, 2), OffsetCommit("gone", 0, 7)]
        )
    assert run("offset", "delete", "-g", "g", "--yes").code == 2, "nothing defaults to all"
    assert run("offset", "delete", "-t", "orders", "--yes").code == 2
    assert run("offset", "delete", "-g", "other", "-t", "orders", "--yes").code == 3
    assert run("offset", "delete", "-g", "g", "-t", "orders").code == 7, "it asks"
    assert run("offset", "delete", "-g", "g", "-t", "orders", "--queue", "1", "--yes").code == 0
    assert offsets() == {0: 5, 1: None}
    assert run("offset", "delete", "-g", "g", "-t", "gone", "--yes").code == 0, "a topic of no more"
    assert run("offset", "delete", "-g", "g", "--all-topics", "--yes").code == 0
    assert load_consumer_offsets(orders) == {}


@pytest.mark.slow
@pytest.mark.feature(67, 74)
def test_a_plan_is_saved_looked_at_and_carried_out(orders, offsets, tmp_path):
    for name in ("plan.csv", "plan.json"):
        plan = tmp_path / name
        saved = run(
            "offset", "reset", "-g", "g", "-t", "orders", "--to-latest", "--export", plan, "-n"
        )
        assert saved.code == 0, saved.err
        assert f"--from-file {plan} --expect {plan}'" in saved.err
        assert offsets() == {0: 5, 1: None}
        given = ("offset", "reset", "--from-file", plan, "--expect", plan, *DO)
        assert run(*given).code == 0
        assert offsets() == {0: 10, 1: 5}
        again = run(*given)
        assert again.code == 6
        assert "queue 0 of orders in group g was at 5 and is at 10 now" in again.err
        assert run("offset", "undo", "--last", *DO).code == 0


def test_a_plan_has_the_fields_of_its_rows(orders, tmp_path):
    plan = tmp_path / "plan.json"
    given = ("offset", "reset", "-g", "g", "-t", "orders", "--to-earliest", "--export", plan)
    shown = run(*given, "-o", "json").json()
    saved = json.loads(plan.read_text())
    assert saved == [
        {**row, "age_new_ms": was["age_new_ms"]} for row, was in zip(shown, saved, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.feature(67)
def test_kafkas_layout_is_read(orders, offsets, tmp_path):
    file = tmp_path / "kafka.csv"
    file.write_text("orders,0,3\norders,1,1\n")
    assert run("offset", "import", file, "--yes").code == 2, "it names no group"
    result = run("offset", "import", file, "-g", "g", "--yes", "-o", "json")
    assert result.code == 0, result.err
    assert offsets() == {0: 3, 1: 1}
    assert run("offset", "reset", "--from-file", file, "-g", "h", *DO).code == 3
    assert run("offset", "reset", "--from-file", file, "-g", "h", "--new-group", *DO).code == 0
    assert offsets("h") == {0: 3, 1: 1}
    assert run("offset", "import", file, "-g", "g", "-t", "orders:0", "--dry-run").code == 0
    file.write_text("orders,9,3\n")
    assert run("offset", "import", file, "-g", "g", "--yes").code == 3
    file.write_text("orders,zero,3\n")
    assert run("offset", "import", file, "-g", "g", "--yes").code == 2
    assert run("offset", "import", tmp_path / "none.csv", "-g", "g", "--yes").code == 3


def test_what_is_exported_is_imported(orders, offsets, tmp_path):
    saved = tmp_path / "saved.csv"
    saved.write_text(run("offset", "export", "g", "-o", "csv").out)
    run("offset", "delete", "-g", "g", "--all-topics", "--yes")
    result = run("offset", "import", saved, "-g", "g", "--yes")
    assert result.code == 0, result.err
    assert offsets() == {0: 5, 1: None}


@pytest.mark.feature(77)
@pytest.mark.parametrize(("expected", "code"), [("5", 0), ("4", 6)])
def test_one_queue_with_its_expected_offset(orders, offsets, expected, code):
    given = ("offset", "reset", "-g", "g", "-t", "orders:0", "--to-latest", *DO)
    assert run(*given, "--expect", expected).code == code
    assert offsets()[0] == (5 if code else 10)


@pytest.mark.slow
def test_an_expected_number_needs_one_queue_and_a_file_all_of_them(orders, tmp_path):
    given = ("offset", "reset", "-g", "g", "-t", "orders", "--to-latest", *DO)
    assert run(*given, "--expect", "5").code == 2
    plan = tmp_path / "plan.csv"
    run("offset", "reset", "-g", "g", "-t", "orders:0", "--to-latest", "--export", plan)
    result = run(*given, "--expect", plan)
    assert result.code == 6
    assert "queue 1 of orders in group g is not part of the plan" in result.err
    plan.write_text("topic,offset\norders,1\n")
    assert run(*given, "--expect", plan).code == 2
    assert run(*given, "--expect", tmp_path / "none.csv").code == 3
