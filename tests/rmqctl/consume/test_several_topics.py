"""``consume A B``: several topics in the order in which their messages were stored."""

import signal

import pytest

from tests.support.cli import run, start


def send(topic, *bodies, queue=0):
    text = "".join(f"{one}\n" for one in bodies)
    assert run("produce", topic, "-q", "-Q", queue, stdin=text.encode()).code == 0


@pytest.fixture
def two(store):
    """Six messages, in turn in two topics of different numbers of queues."""
    run("topic", "create", "a", "--queues", 3)
    run("topic", "create", "b", "--queues", 1)
    for i in range(6):
        send("ab"[i % 2], f"m{i}", queue=0 if i % 2 else i // 2)
    return store


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["a", "b", "-e"], [0, 1, 2, 3, 4, 5]),
        (["b", "a", "b", "-e"], [0, 1, 2, 3, 4, 5]),
        (["a", "b", "--last", "3"], [3, 4, 5]),
        (["a", "b", "-c", "4"], [0, 1, 2, 3]),
        (["a", "b", "-e", "--body", "m4"], [4]),
        (["a", "b", "--offset", "0:99"], [0, 1, 2, 3, 4, 5]),
        (["a", "b", "-e", "-g", "g", "--no-commit", "--from-where", "first"], [0, 1, 2, 3, 4, 5]),
        (["a", "b", "--from", "-1h", "--to", "+1h"], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_messages_of_two_topics_come_in_the_order_of_the_log(two, options, expected):
    result = run("consume", *options)
    assert result.code == 0, result.err
    assert result.lines == [f"m{i}" for i in expected]


@pytest.mark.slow
def test_many_bodies_are_merged_too(store):
    """More than 2000 bodies are read by columns."""
    for part in range(4):
        send("ab"[part % 2], *[f"{part}:{i}" for i in range(700)])
    result = run("consume", "a", "b", "-e")
    assert result.lines == [f"{part}:{i}" for part in range(4) for i in range(700)]


@pytest.mark.slow
def test_rows_and_templates_say_the_topic(two):
    rows = run("consume", "a", "b", "-e", "-o", "json").json()
    assert [row["topic"] for row in rows] == ["a", "b"] * 3
    assert run("consume", "a", "b", "--last", 2, "-f", r"%t %s\n").lines == ["a m4", "b m5"]


@pytest.mark.slow
def test_new_messages_of_both_topics_and_of_new_queues_are_followed(two):
    reader = start("consume", "a", "b", "--last", 1, "-F")
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"m5\n"
    send("a", "x")
    assert reader.stdout.readline() == b"x\n"
    send("b", "y")
    assert reader.stdout.readline() == b"y\n"
    run("topic", "alter", "b", "--queues", 2, "-y")
    run("produce", "b", "-q", "-Q", 1, stdin=b"z\n")
    assert reader.stdout.readline() == b"z\n"
    reader.send_signal(signal.SIGINT)
    reader.communicate()
    assert reader.returncode == 130


@pytest.mark.slow
def test_a_member_of_a_group_reads_one_topic(two):
    result = run("consume", "a", "b", "-g", "g", "-e")
    assert result.code == 2
    assert "a member of a group reads one topic here" in result.err
    assert run("consume", "a", "a", "-g", "g", "-e").code == 0


@pytest.mark.slow
def test_queues_are_those_of_each_topic(two):
    numbers = [
        row["queue_id"] for row in run("consume", "a", "b", "-e", "-Q", 0, "-o", "json").json()
    ]
    assert set(numbers) == {0}
    assert len(numbers) == 4
    assert "topic b has no queue 2" in run("consume", "a", "b", "-Q", 2, "-e").err


@pytest.mark.slow
def test_an_unknown_topic_among_several_is_named(two):
    result = run("consume", "a", "nope", "-e")
    assert result.code == 3
    assert "topic nope does not exist" in result.err
    assert "did you mean 'a b'?" in run("consume", "a,b", "-e").err
