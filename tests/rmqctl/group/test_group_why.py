"""``group why``: why a group lags, and since when."""

import json

import pytest

from tests.support import golden
from tests.support.cli import run, start


def why(*args):
    result = run("group", "why", *args, "-o", "json")
    assert result.code == 0, result.err
    return result.json()


@pytest.fixture
def orders(store):
    """A topic of one queue with three orders."""
    run("topic", "create", "orders", "--queues", 1)
    for key in ("order-1", "order-2", "order-3"):
        run("produce", "orders", "-q", "-k", key, stdin=b"x\n")
    return store


@pytest.mark.slow
def test_the_message_that_an_orderly_queue_waits_at_is_named(orders):
    command = ("sh", "-c", "echo boom >&2; exit 3")
    given = ("--orderly", "--from-where", "first", "--exec", f"sh -c '{command[2]}'")
    with start("consume", "orders", "-g", "packing", *given) as process:
        try:
            while run("group", "why", "packing").code:  # it is no group yet
                assert process.poll() is None
            while not (found := why("packing"))["queues"] or (
                found["queues"][-1]["next_message"] is None
            ):
                assert process.poll() is None
            shown = run("group", "why", "packing").out
        finally:
            process.terminate()
            _, err = process.communicate(timeout=30)
    assert found["state"] == "WARN"
    (member,) = found["members"]
    assert (member["pid"], member["orderly"], member["answers"]) == (process.pid, True, True)
    queue = found["queues"][-1]
    assert (queue["topic"], queue["committed_offset"], queue["lag"]) == ("orders", 0, 3)
    message = queue["next_message"]
    assert (message["queue_offset"], message["keys"]) == (0, ["order-1"])
    assert message["failed_times"] >= 1
    assert message["last_failure"] == "CommandFailedError: exit code 3: boom"
    assert message["maybe_blocked"] is True
    assert "rmqctl offset reset -g packing -t orders:0 --shift-by 1" in found["advice"]
    assert "orders:0 waits at one message" in shown
    assert "order-1" in shown
    assert "warning: orders 0:0 failed once: exit code 3: boom" in err.decode()


@pytest.mark.slow
def test_a_group_without_members_says_so_and_how_to_go_on(orders):
    run("consume", "orders", "-g", "billing", "-c", 1, "-q")
    found = why("-g", "billing")
    assert (found["lag"], found["members"]) == (2, [])
    assert found["advice"] == ["rmqctl consume orders -g billing"]
    assert found["last_consumed_timestamp"] is not None
    parts = [row["part"] for row in found["facts"]]
    assert parts[:3] == ["STATE", "MEMBER", "QUEUE"]


def test_on_a_java_brokers_disk_members_are_unknown():
    root = golden.store("retry-dlq-4.9")
    groups = [
        row["group"] for row in run("dlq", "list", "-S", root, "-o", "json").json() if row["depth"]
    ]
    found = why(groups[0], "-S", root)
    assert found["members"] is None
    assert (found["since_timestamp"], found["last_member_timestamp"]) == (None, None)
    assert found["dead_letters"]["depth"] > 0
    assert f"rmqctl dlq redrive {groups[0]} --all" in found["advice"]
    assert "a Java broker keeps its members in memory" in json.dumps(found["facts"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["biling"], 3, "did you mean 'billing'?"),
        ([], 2, "name one group"),
        (["billing", "-g", "audit"], 2, "billing and --group audit name two groups; give one"),
    ],
)
def test_one_known_group_is_named(orders, args, code, words):
    run("consume", "orders", "-g", "billing", "-e", "-q")
    result = run("group", "why", *args)
    assert (result.code, result.raw) == (code, b"")
    assert words in result.err


@pytest.mark.slow
def test_a_group_by_itself_has_the_state_of_its_worst_queue(orders):
    run("consume", "orders", "-g", "billing", "-c", 1, "-q")
    rows = run("lag", "show", "billing", "--by", "queue", "-o", "json").json()
    (row,) = run("lag", "show", "billing", "-o", "json").json()
    assert row["status"] in {queue["status"] for queue in rows}
