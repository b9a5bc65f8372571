"""offset import, and files of offsets: what is imported, what is refused, and the messages."""

import json

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from tests.support.cli import run


@pytest.fixture
def with_gone(orders):
    """Progress in a topic that is gone and in a queue that is gone, too."""
    commits = [OffsetCommit("gone", 0, 7), OffsetCommit("orders", 5, 3)]
    with EmbeddedBroker.open(orders) as broker:
        broker.update_consumer_offsets("ghost", commits)
    return orders


@pytest.mark.feature(84)
@pytest.mark.parametrize("name", ["all.csv", "all.json"])
def test_what_was_exported_goes_back_into_the_same_store(with_gone, tmp_path, name):
    saved = tmp_path / name
    assert run("offset", "export", "--save", saved).code == 0
    done = run("offset", "import", saved, "--dry-run", "-o", "json")
    assert done.code == 0, done.err
    places = {(row["group"], row["topic"], row["queue_id"]) for row in done.json()}
    assert places == {("g", "orders", 0), ("ghost", "gone", 0), ("ghost", "orders", 5)}
    # Of a group that never had progress there it is a mistake still.
    (tmp_path / "other.csv").write_text("gone,0,7\n")
    other = run("offset", "import", tmp_path / "other.csv", "-g", "g", "--dry-run")
    assert other.code == 3
    assert "topic gone does not exist" in other.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("g,orders,0,1\ng,orders,1,1\ng,orders,0,2\n", "line 3 has another offset for queue 0"),
        ("topic,queue,offset\norders,0,1\norders,0,\n", "(none) than line 2 (1)"),
        (
            json.dumps(
                [{"group": "g", "topic": "orders", "queue": 0, "offset": n} for n in (1, 2)]
            ),
            "entry 2 has another offset for queue 0 of orders in group g (2) than entry 1 (1)",
        ),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(orders, tmp_path, text, said):
    file = tmp_path / "offsets"
    file.write_text(text)
    for command in (["import", file, "-g", "g", "--dry-run"], ["diff", file, "g"]):
        done = run("offset", *command)
        assert done.code == 2
        assert said in done.err
    file.write_text("g,orders,0,1\ng,orders,0,1\n")
    assert run("offset", "import", file, "--dry-run").code == 0


def test_a_line_without_a_group_contradicts_one_of_the_group(orders, tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text("group,topic,queue,offset\ng,orders,0,1\n,orders,0,2\n")
    done = run("offset", "import", file, "-g", "g", "--dry-run")
    assert done.code == 2
    assert "two offsets for queue 0 of orders in group g (1 and 2)" in done.err
    file.write_text("group,topic,queue,offset\ng,orders,0,1\n,orders,0,1\n")
    assert run("offset", "import", file, "-g", "g", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "has no offsets: it is empty"),
        (("-g", "other"), "has no offsets of group other; it has those of g, h"),
        (("-t", "gone"), "has no offsets of topic gone; it has those of orders"),
        (("-g", "g", "-t", "orders:1"), "has no offsets of group g in topic orders"),
        (("-t", "orders:0,3"), "has no offset of queue 3 of orders; it has 0, 1"),
    ],
)
def test_what_a_file_does_not_have_is_named(orders, tmp_path, args, said):
    file = tmp_path / "offsets.csv"
    file.write_text("g,orders,0,1\nh,orders,1,2\n" if args else "")
    done = run("offset", "import", file, *args, "--dry-run")
    assert done.code == 3
    assert said in done.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("-g", "g", "-t", "orders", "-Q", "9"), "orders has no queue 9, but 0, 1"),
        (("-g", "g", "-t", "orders", "-Q", "0,9"), "orders has no queue 9, but 0, 1"),
        (("-g", "new", "--all-topics"), "group new does not exist"),
        (("-g", "new", "--all-topics", "--new-group"), "group new has no progress in any topic of"),
        (("--all-groups", "-t", "unread"), "no group has progress in topic unread of"),
    ],
)
def test_a_reset_says_what_there_is(orders, args, said):
    assert run("topic", "create", "unread").code == 0
    done = run("offset", "reset", *args, "--to-latest")
    assert done.code == 3
    assert said in done.err
    assert "is meant by that" not in done.err


def test_an_inspection_says_which_queues_there_are(orders):
    done = run("offset", "inspect", "g", "-Q", "0,9")
    assert done.code == 3
    assert "none of the topics that were chosen has a queue 9; they have 0, 1" in done.err
    assert run("offset", "inspect", "g", "-Q", "0-1").code == 0


def test_a_time_to_come_is_compared_with_nothing(orders):
    for args in (("@2090-01-01", "now"), ("now", "2090-01-01")):
        done = run("offset", "diff", *args)
        assert done.code == 2
        assert "2090-01-01' has not come yet" in done.err
    assert run("offset", "diff", "now", "@now").code == 0
